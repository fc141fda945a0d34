import { afterEach, expect, it } from 'vitest';
import { placement } from '../test/placement.ts';
import { SessionLab } from '../test/session-lab.ts';

let lab: SessionLab;

afterEach(() => lab?.[Symbol.asyncDispose]());

/** A worker with two sessions. The guest of the first one does not save its state unless it is told to. */
async function start(endSeconds?: number) {
  lab = await SessionLab.start({
    ...(endSeconds === undefined ? {} : { endSeconds }),
    agentTimeouts: { saveMs: 600_000, finishMs: 600_000 },
  });
  const { guest, harness } = lab;
  const slow = await harness.startSession();
  const asked = Promise.withResolvers<void>();
  guest.onSave = asked.resolve;
  await lab.addGuest();
  const quick = await harness.startSession();
  return { ...harness, slow, quick, asked: asked.promise, save: () => guest.state('in time') };
}

it('tells the control plane so before it ends a sandbox, and refuses new ones', async () => {
  const { worker, controlPlane, host, slow, asked, save } = await start();
  const before = controlPlane.heartbeats.map(({ draining }) => draining ?? false);
  expect(before).not.toContain(true);
  const closed = worker.close({ keepSandboxes: false });
  await asked;
  expect(controlPlane.heartbeats.at(-1)?.draining).toBe(true);
  const announced = controlPlane.heartbeats.find(({ draining }) => draining === true);
  expect(announced?.sandboxes.map(({ state }) => state)).toEqual(['running', 'running']);
  expect(host.vmOf(slow.vmId).isGone).toBe(false);
  expect(await lab.harness.json('POST', '/sandboxes', placement())).toMatchObject({
    status: 503,
    body: { code: 'shutting_down' },
  });
  save();
  await closed;
  expect(host.live).toEqual([]);
});

it('reports the end of each sandbox at once, so that its session can be resumed elsewhere', async () => {
  const { worker, controlPlane, host, slow, quick, asked, save } = await start();
  const closed = worker.close({ keepSandboxes: false });
  await asked;
  await expect
    .poll(() => controlPlane.events.filter(({ state }) => state === 'destroyed'))
    .toMatchObject([{ vm_id: quick.vmId, end_reason: 'drained' }]);
  expect(host.vmOf(slow.vmId).isGone).toBe(false);
  // As long as a sandbox is left, the worker is not silent.
  const { length } = controlPlane.heartbeats;
  await expect.poll(() => controlPlane.heartbeats.length).toBeGreaterThan(length);
  save();
  await closed;
  expect(controlPlane.sessions.turns.map(({ conversation }) => conversation)).toContain('in time');
  expect(controlPlane.events.at(-1)).toMatchObject({ vm_id: slow.vmId, end_reason: 'drained' });
});

it('ends what is left at its deadline without saving it, and says so', async () => {
  const { worker, controlPlane, host, slow } = await start(1);
  await worker.close({ keepSandboxes: false });
  expect(host.live).toEqual([]);
  expect(controlPlane.events.findLast(({ vm_id }) => vm_id === slow.vmId)).toMatchObject({
    state: 'destroyed',
    end_reason: 'drained',
  });
});

it('that keeps its sandboxes for a restart does not say that it goes away', async () => {
  const { worker, controlPlane } = await start();
  await worker.close({ keepSandboxes: true });
  expect(controlPlane.heartbeats.map(({ draining }) => draining ?? false)).not.toContain(true);
});

it('waits only briefly for a control plane that does not answer', async () => {
  const { worker, controlPlane, host, asked, save } = await start();
  await controlPlane.stop();
  const closed = worker.close({ keepSandboxes: false });
  await asked;
  await controlPlane.start();
  save();
  await closed;
  expect(host.live).toEqual([]);
});
