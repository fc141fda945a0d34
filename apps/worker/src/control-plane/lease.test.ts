import type { RenewLeaseRequest } from '@svc/contract';
import { expect, it } from 'vitest';
import type { HarnessOptions } from '../../test/harness.ts';
import { SessionLab } from '../../test/session-lab.ts';
import { SessionSocket } from '../../test/session-socket.ts';
import { silentLogger } from '../../test/silent-logger.ts';
import { startHarness } from '../../test/start-harness.ts';
import { systemClock } from '../clock.ts';
import { Lease } from './lease.ts';
import { LeaseFile } from './lease-file.ts';

/** Many reports long, so that a busy machine does not end a lease that is renewed. */
const LEASE_MS = 2_000;
const LATER_MS = 3_600_000;
const start = (options: HarnessOptions = {}) =>
  startHarness({ lease: leaseOf(LEASE_MS), ...options });

const leaseOf = (ms: number) => ({ sandboxMs: ms, sessionMs: ms });
const run = { command: 'true', timeout_ms: 1000 };

it('VMs run as long as a control plane accepts reports', async () => {
  const harness = await start({ lease: leaseOf(4_000) });
  const vm = harness.host.vmOf(await harness.create());
  const reports = () => harness.controlPlane.heartbeats.length;
  const before = reports();
  // At 50 ms each.
  await expect.poll(reports, { timeout: 60_000 }).toBeGreaterThan(before + 100);
  expect(vm.pauses).toBe(0);
});

it('a worker that no control plane answers holds its VMs, and releases them when one does', async () => {
  const harness = await start();
  const [running, paused] = [await harness.create(), await harness.create()];
  await harness.json('POST', `/sandboxes/${paused}/pause`);
  const [vm, other] = [harness.host.vmOf(running), harness.host.vmOf(paused)];
  harness.controlPlane.broken = true;
  await expect.poll(() => vm.paused).toBe(true);
  for (const id of [running, paused]) {
    await expect
      .poll(() => harness.exec(id, run))
      .toMatchObject({ status: 503, body: { code: 'worker_unreachable' } });
    for (const action of ['pause', 'resume']) {
      expect(await harness.json('POST', `/sandboxes/${id}/${action}`)).toMatchObject({
        status: 503,
      });
    }
  }
  harness.controlPlane.broken = false;
  await expect.poll(() => vm.paused).toBe(false);
  expect(other.paused).toBe(true);
  for (const id of [running, paused]) {
    await expect.poll(() => harness.exec(id, run)).toMatchObject({ status: 200 });
  }
  expect(other.paused).toBe(false);
});

it('the VM of a session is held long before others, and its clients are disconnected', async () => {
  await using lab = await SessionLab.start({
    lease: { sandboxMs: LATER_MS, sessionMs: LEASE_MS },
  });
  const { harness } = lab;
  const other = harness.host.vmOf(await harness.create());
  const { session, vmId, client } = await lab.startAttached();
  const vm = harness.host.vmOf(vmId);
  harness.controlPlane.broken = true;
  expect(await client.closed).toEqual({ code: 1011, reason: 'upstream unavailable' });
  expect(vm.paused).toBe(true);
  expect(await SessionSocket.refusal(harness, session)).toMatchObject({
    code: 'worker_unreachable',
  });
  expect(other.paused).toBe(false);
  harness.controlPlane.broken = false;
  await expect.poll(() => vm.paused).toBe(false);
  await lab.attach(session);
});

it('a VM whose sandbox was ended meanwhile does not run again', async () => {
  const harness = await start();
  const [given, kept] = [await harness.create(), await harness.create()];
  const [vm, other] = [harness.host.vmOf(given), harness.host.vmOf(kept)];
  harness.controlPlane.broken = true;
  await expect.poll(() => [vm.paused, other.paused]).toEqual([true, true]);
  harness.controlPlane.orders = [{ vm_id: given, generation: 1, reason: 'deleted' }];
  harness.controlPlane.broken = false;
  await expect.poll(() => vm.isGone).toBe(true);
  expect(vm.paused).toBe(true);
  await expect.poll(() => other.paused).toBe(false);
});

it('no VM runs again whose end waits for its turn, though the next reports repeat no order', async () => {
  const harness = await start();
  const ids = await Promise.all(Array.from({ length: 10 }, () => harness.create()));
  const vms = ids.map((id) => harness.host.vmOf(id));
  const mayEnd = Promise.withResolvers<void>();
  for (const vm of vms) {
    const destroy = vm.destroy.bind(vm);
    vm.destroy = async () => {
      await mayEnd.promise;
      await destroy();
    };
  }
  const { controlPlane } = harness;
  controlPlane.broken = true;
  await expect.poll(() => vms.every(({ paused }) => paused)).toBe(true);
  controlPlane.orders = ids.map((vm_id) => ({ vm_id, generation: 1, reason: 'deleted' }));
  const leases: RenewLeaseRequest[] = [];
  controlPlane.leases = leases;
  controlPlane.broken = false;
  await expect.poll(() => leases.length).toBeGreaterThan(5);
  mayEnd.resolve();
  await expect.poll(() => vms.every(({ isGone }) => isGone)).toBe(true);
  expect(vms.map(({ resumes }) => resumes)).toEqual(vms.map(() => 0));
});

it('a VM that cannot be released is tried again', async () => {
  let failures = 1;
  const power = {
    isHeld: false,
    mayBeStopped: false,
    hold: async () => {
      power.isHeld = true;
    },
    release: async () => {
      failures -= 1;
      if (failures >= 0) throw new Error('not yet');
      power.isHeld = false;
    },
  };
  const faults: unknown[] = [];
  const lease = new Lease({
    file: new LeaseFile('/dev/null/lease.json', 'boot'),
    renewedAtMs: systemClock.monotonic() - LATER_MS,
    times: leaseOf(LEASE_MS),
    registry: {
      live: () => [
        {
          id: 'vm_a',
          isSession: false,
          isQuarantined: false,
          connections: { closeAll: () => {} },
          power,
        },
      ],
    },
    clock: systemClock,
    logger: silentLogger,
    onFault: (_error, action) => faults.push(action),
  });
  const stop = new AbortController();
  const running = lease.run(stop.signal);
  await expect.poll(() => power.isHeld).toBe(true);
  // The lease does not end soon.
  lease.renew(systemClock.monotonic() + LATER_MS);
  await expect.poll(() => power.isHeld).toBe(false);
  expect(faults).toContain('release vm_a');
  stop.abort();
  await running;
});

it('a worker that starts again goes on with the lease that it had', async () => {
  const first = await start({ lease: leaseOf(LATER_MS) });
  const id = await first.create();
  const vm = first.host.vmOf(id);
  await first.controlPlane.stop();
  await first.worker.close({ keepSandboxes: true });
  expect(vm.paused).toBe(false);
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + LATER_MS };
  const { host, dataDir, controlPlane } = first;
  const second = await start({
    ...{ host, dataDir, controlPlane, clock },
    lease: leaseOf(LATER_MS),
    withoutControlPlane: true,
  });
  await expect.poll(() => vm.paused).toBe(true);
  await controlPlane.start();
  await second.worker.ready;
  await expect.poll(async () => (await second.exec(id, run)).status).toBe(200);
});
