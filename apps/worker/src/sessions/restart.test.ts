import { appendFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '@svc/contract';
import { expect, it } from 'vitest';
import { useSessionLab } from '../../test/session-lab.ts';

// Long enough for a commit on a busy machine.
const lab = useSessionLab({ agentTimeouts: { restartCommitMs: 6_000 } });

async function segments(session: string): Promise<string[]> {
  const directory = join(lab().harness.dataDir, 'sessions', `${session}.1`);
  const names = await readdir(directory);
  return names.filter((name) => name.endsWith('.frames')).map((name) => join(directory, name));
}

it('gives a client that reattaches every frame once, and continues the turn', async () => {
  const { guest } = lab();
  const { session, vmId, client: before } = await lab().startAttached();
  guest.onClient = () => undefined;
  before.send({ type: 'task', prompt: 'long' });
  guest.frame({ type: 'task_started' });
  guest.frame({ type: 'text_delta', data: 'before' });
  await before.next(({ data }) => data === 'before');
  await lab().restart(() => {
    guest.frame({ type: 'text_delta', data: 'between' });
  });
  expect(await before.closed).toEqual({ code: 1001, reason: 'server shutting down' });
  const after = await lab().attach(session, { afterSeq: 1 });
  guest.state('all of it');
  guest.frame({ type: 'task_completed', status: 'completed', result: 'done' });
  await after.next(({ type }) => type === 'task_completed');
  expect(after.frames.map(({ seq, type, data }) => [seq, data ?? type])).toEqual([
    [undefined, 'ready'],
    [2, 'before'],
    [3, 'between'],
    [4, 'task_completed'],
  ]);
  const { turns } = lab().store;
  await expect.poll(() => turns.at(-1)).toMatchObject({ vm_id: vmId, last_seq: 4 });
  expect(turns.find((turn) => turn.conversation === 'all of it')).toBeDefined();
  // The worker has fetched the credentials again and passed the environment on.
  await expect
    .poll(() => guest.all('env').at(-1))
    .toMatchObject({ type: 'env', env: { GREETING: 'hello' } });
});

it('saves the frames so far, and lets the task go on', async () => {
  const { guest, store, harness } = lab();
  const { session, client } = await lab().startAttached();
  guest.onClient = () => undefined;
  client.send({ type: 'task', prompt: 'long' });
  guest.frame({ type: 'task_started' });
  guest.frame({ type: 'text_delta', data: 'half' });
  await client.next(({ data }) => data === 'half');
  await lab().restart(() => {
    expect(store.frames.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(harness.host.live).toHaveLength(1);
    expect(guest.all('save')).toEqual([]);
  });
  const again = await lab().attach(session);
  guest.state('all of it');
  guest.frame({ type: 'task_completed', status: 'completed', result: 'done' });
  await again.next(({ type }) => type === 'task_completed');
  await expect.poll(() => store.frames.map(({ seq }) => seq)).toEqual([1, 2, 3]);
});

it('waits a while to save frames, which the next worker saves otherwise', async () => {
  const { guest, store } = lab();
  await lab().startAttached();
  guest.frame({ type: 'text_delta', data: 'half' });
  await guest.drained();
  const gate = Promise.withResolvers<void>();
  store.gate = gate.promise;
  const begun = performance.now();
  let took = 0;
  await lab().restart(() => {
    took = performance.now() - begun;
    expect([store.commitsAsked, store.frames]).toEqual([1, []]);
    store.gate = Promise.resolve();
  });
  // On a slow machine, everything else takes its time too.
  expect(took).toBeLessThan(20_000);
  guest.turn('a', 'a');
  await expect.poll(() => store.frames.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  gate.resolve();
});

it('gets a frame again from the guest that a killed worker had written partially', async () => {
  const { guest } = lab();
  const { session } = await lab().harness.startSession();
  guest.frame({ type: 'text_delta', data: 'whole' });
  await guest.drained();
  await lab().restart(async () => {
    const [path = ''] = await segments(session);
    await appendFile(path, '2 {"type":"text_delta","data":"ha');
    guest.frame({ type: 'text_delta', data: 'half' });
  });
  const client = await lab().attach(session, { afterSeq: 0 });
  await client.next(({ data }) => data === 'half');
  expect(client.frames.map(({ seq, data }) => [seq, data])).toEqual([
    [undefined, undefined],
    [1, 'whole'],
    [2, 'half'],
  ]);
  await guest.drained();
});

it('delivers clients’ frames once that the guest had not received', async () => {
  const { guest } = lab();
  const { session, client } = await lab().startAttached();
  client.send({ type: 'exec', command: 'first' });
  await expect.poll(() => guest.all('client')).toHaveLength(1);
  guest.open = false;
  guest.cut();
  client.send({ type: 'exec', command: 'second' });
  client.send({ type: 'exec', command: 'third' });
  client.send({ type: 'ping' });
  await client.next(({ type }) => type === 'pong');
  const executed: unknown[] = [];
  guest.onClient = (frame) => executed.push('command' in frame ? frame.command : frame.type);
  await lab().restart(() => {
    guest.open = true;
  });
  await expect.poll(() => executed).toEqual(['second', 'third']);
  const again = await lab().attach(session);
  again.send({ type: 'exec', command: 'fourth' });
  await expect.poll(() => executed).toEqual(['second', 'third', 'fourth']);
  expect(guest.all('client').at(-1)).toMatchObject({ c: 4 });
});

it('commits a turn whose commit was interrupted, then shows its end', async () => {
  const { store } = lab();
  const { session } = await lab().harness.startSession();
  const gate = Promise.withResolvers<void>();
  store.gate = gate.promise;
  const client = await lab().attach(session);
  client.send({ type: 'task', prompt: 'a' });
  await expect.poll(() => store.commitsAsked).toBe(1);
  store.gate = Promise.resolve();
  await lab().restart();
  const again = await lab().attach(session, { afterSeq: 0 });
  await again.next(({ type }) => type === 'task_completed');
  expect(again.seqs).toEqual([1, 2, 3]);
  expect(store.turns.find(({ conversation }) => conversation === 'a')).toBeDefined();
  gate.resolve();
});

it('lets clients attach to a paused session', async () => {
  const { session, vmId } = await lab().harness.startSession();
  await lab().harness.json('POST', `/sandboxes/${vmId}/pause`);
  await lab().restart();
  const client = await lab().attach(session);
  expect(await lab().harness.json('GET', `/sandboxes/${vmId}`)).toMatchObject({
    body: { state: 'running', active_connections: 1 },
  });
  client.send({ type: 'task', prompt: 'awake?' });
  await client.next(({ type }) => type === 'task_completed');
});

it('commits the frames of a session whose VM died during the restart', async () => {
  const { harness, store } = lab();
  const { session } = await harness.startSession();
  lab().guest.frame({ type: 'text_delta', data: 'last words' });
  await lab().guest.drained();
  store.failure = new ServiceError('internal_error');
  await lab().restart(() => {
    store.failure = undefined;
    harness.host.live[0]?.die();
  });
  await expect
    .poll(() => lab().store.turns.at(-1))
    .toMatchObject({ session, first_seq: 1, last_seq: 1 });
  await expect.poll(() => readdir(join(harness.dataDir, 'sessions'))).toEqual([]);
});

it('saves a session whose sandbox was about to end', async () => {
  const { harness } = lab();
  const { session, vmId } = await harness.startSession();
  lab().guest.conversation = 'not yet saved';
  await lab().restart(() => {
    const vm = harness.host.vmOf(vmId);
    vm.labels = { ...vm.labels, end_reason: 'idle_timeout' };
  });
  await expect.poll(() => harness.host.live).toEqual([]);
  expect(lab().store.stateOf(session)).toMatchObject({ conversation: 'not yet saved' });
});

it('leaves no files of an ended session on disk', async () => {
  const { harness } = lab();
  const { vmId } = await harness.startSession();
  await harness.json('DELETE', `/sandboxes/${vmId}`);
  expect(await readdir(join(harness.dataDir, 'sessions'))).toEqual([]);
});
