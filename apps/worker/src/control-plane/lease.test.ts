import { afterEach, expect, it } from 'vitest';
import { Harness, type HarnessOptions } from '../../test/harness.ts';
import { systemClock } from '../clock.ts';

const LEASE_MS = 500;
const LATER_MS = 3_600_000;
const harnesses: Harness[] = [];

afterEach(async () => {
  for (const harness of harnesses.splice(0)) await harness[Symbol.asyncDispose]();
});

async function start(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await Harness.start({ leaseMs: LEASE_MS, ...options });
  harnesses.push(harness);
  return harness;
}

const run = { command: 'true', timeout_ms: 1000 };

it('VMs run as long as a control plane accepts reports', async () => {
  const harness = await start({ leaseMs: 4_000 });
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
  expect((await harness.exec(running, run)).status).toBe(200);
  expect((await harness.exec(paused, run)).status).toBe(200);
  expect(other.paused).toBe(false);
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

it('a worker that starts again goes on with the lease that it had', async () => {
  const first = await start({ leaseMs: LATER_MS });
  const id = await first.create();
  const vm = first.host.vmOf(id);
  await first.controlPlane.stop();
  await first.worker.close({ keepSandboxes: true });
  expect(vm.paused).toBe(false);
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + LATER_MS };
  const { host, dataDir, controlPlane } = first;
  const second = await start({
    ...{ host, dataDir, controlPlane, clock },
    leaseMs: LATER_MS,
    withoutControlPlane: true,
  });
  await expect.poll(() => vm.paused).toBe(true);
  await controlPlane.start();
  await second.worker.ready;
  await expect.poll(async () => (await second.exec(id, run)).status).toBe(200);
});
