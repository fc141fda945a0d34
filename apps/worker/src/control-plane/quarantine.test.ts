import { expect, it } from 'vitest';
import type { Harness } from '../../test/harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { SessionLab } from '../../test/session-lab.ts';
import { startHarness } from '../../test/start-harness.ts';
import { systemClock } from '../clock.ts';

const DAY_MS = 24 * 3_600_000;
const run = { command: 'true', timeout_ms: 1000 };
const order = (vmId: string) => ({ vm_id: vmId, generation: 1 });

/** A worker with a sandbox whose VM is held. */
async function startHeld() {
  const harness = await startHarness();
  const id = await harness.create();
  const vm = harness.host.vmOf(id);
  harness.controlPlane.quarantine = [order(id)];
  await expect.poll(() => vm.paused).toBe(true);
  return { harness, id, vm };
}

/** The next worker on the same machine, whose lifetimes have all ended meanwhile. */
async function restartLater(first: Harness): Promise<Harness> {
  await first.worker.close({ keepSandboxes: true });
  const { host, dataDir, controlPlane } = first;
  const clock = {
    wall: () => systemClock.wall() + DAY_MS,
    monotonic: () => systemClock.monotonic() + DAY_MS,
  };
  const second = await startHarness({
    ...{ host: new MemoryHost(host.live), dataDir, controlPlane, clock },
    // It runs already.
    withoutControlPlane: true,
  });
  await second.worker.ready;
  return second;
}

const reported = ({ controlPlane }: Harness, id: string) =>
  controlPlane.heartbeats.at(-1)?.sandboxes.find(({ vm_id }) => vm_id === id);

async function afterHeartbeats({ controlPlane }: Harness, count: number): Promise<void> {
  const before = controlPlane.heartbeats.length;
  await expect.poll(() => controlPlane.heartbeats.length).toBeGreaterThanOrEqual(before + count);
}

it('a sandbox in quarantine stands still, nobody uses it, and others go on', async () => {
  const { harness, id, vm } = await startHeld();
  const other = await harness.create();
  expect(await harness.exec(id, run)).toMatchObject({
    status: 503,
    body: { code: 'worker_unreachable' },
  });
  expect((await harness.exec(other, run)).status).toBe(200);
  await expect
    .poll(() => reported(harness, id))
    .toMatchObject({
      state: 'running',
      placement: { template: 'standard' },
    });
  await afterHeartbeats(harness, 3);
  expect(reported(harness, other)).toMatchObject({ state: 'running' });
  expect(reported(harness, other)).not.toHaveProperty('placement');
  expect(vm.paused).toBe(true);
});

it('a released sandbox goes on where it stood', async () => {
  const { harness, id, vm } = await startHeld();
  harness.controlPlane.quarantine = [];
  await expect.poll(() => vm.paused).toBe(false);
  await expect.poll(async () => (await harness.exec(id, run)).status).toBe(200);
  expect(vm.pauses).toBe(1);
});

it('a sandbox in quarantine ends by an order', async () => {
  const { harness, id, vm } = await startHeld();
  harness.controlPlane.quarantine = [];
  harness.controlPlane.orders = [{ ...order(id), reason: 'deleted' }];
  await expect.poll(() => vm.isGone).toBe(true);
});

it('an order for another generation holds nothing', async () => {
  const harness = await startHarness();
  const id = await harness.create();
  harness.controlPlane.quarantine = [{ vm_id: id, generation: 2 }];
  await afterHeartbeats(harness, 3);
  expect(harness.host.vmOf(id).paused).toBe(false);
});

it('a restarted worker holds it before any control plane answers, even past its lifetime', async () => {
  const { harness, id, vm } = await startHeld();
  const second = await restartLater(harness);
  await afterHeartbeats(second, 3);
  expect(vm.isGone).toBe(false);
  expect(vm.paused).toBe(true);
  expect((await second.exec(id, run)).status).toBe(503);
});

it('a restarted worker ends what is past its lifetime only if the control plane knows it', async () => {
  const first = await startHarness();
  const [lost, known] = [await first.create(), await first.create()];
  const [lostVm, knownVm] = [first.host.vmOf(lost), first.host.vmOf(known)];
  first.controlPlane.heartbeatMs = 3_600_000;
  first.controlPlane.quarantine = [order(lost)];
  const second = await restartLater(first);
  await expect.poll(() => knownVm.isGone).toBe(true);
  expect(lostVm.isGone).toBe(false);
  await expect.poll(() => lostVm.paused).toBe(true);
  expect(await second.json('GET', `/sandboxes/${known}`)).toMatchObject({
    body: { end_reason: 'max_lifetime' },
  });
});

it('the client of a session in quarantine is disconnected, and its agent is not given up', async () => {
  await using lab = await SessionLab.start({ agentTimeouts: { linkLostMs: 100 } });
  const { vmId, client } = await lab.startAttached();
  const vm = lab.harness.host.vmOf(vmId);
  lab.harness.controlPlane.quarantine = [order(vmId)];
  expect(await client.closed).toEqual({ code: 1011, reason: 'upstream unavailable' });
  await expect.poll(() => vm.paused).toBe(true);
  await lab.restart();
  await afterHeartbeats(lab.harness, 10);
  expect(vm.isGone).toBe(false);
});
