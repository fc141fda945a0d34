import { appendFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { ScriptedGuest } from '../../test/scripted-guest.ts';
import { SessionSocket } from '../../test/session-socket.ts';
import { until } from '../../test/until.ts';

let guest: ScriptedGuest;
let first: Harness;
const harnesses: Harness[] = [];

beforeEach(async () => {
  guest = await ScriptedGuest.listen();
  first = await Harness.start({ guest });
  harnesses.push(first);
});

afterEach(async () => {
  for (const harness of harnesses.splice(0).reverse()) await harness[Symbol.asyncDispose]();
  await guest[Symbol.asyncDispose]();
});

/** The worker goes and leaves its VMs; what it does between is what happens while there is none. */
async function restart(between: () => Promise<void> | void = () => undefined): Promise<Harness> {
  await first.worker.close({ keepSandboxes: true });
  await between();
  const { controlPlane, dataDir } = first;
  const next = await Harness.start({
    host: new MemoryHost(first.host.live),
    controlPlane,
    dataDir,
    withoutControlPlane: true,
  });
  await next.worker.ready;
  harnesses.push(next);
  return next;
}

async function segments(session: string): Promise<string[]> {
  const directory = join(first.dataDir, 'sessions', `${session}.1`);
  const names = await readdir(directory);
  return names.filter((name) => name.endsWith('.frames')).map((name) => join(directory, name));
}

it('a client that comes back gets every frame once, and the turn goes on', async () => {
  const { session, vmId } = await first.startSession();
  const before = await SessionSocket.open(first, session);
  guest.onClient = () => undefined;
  before.send({ type: 'task', prompt: 'long' });
  guest.frame({ type: 'task_started' });
  guest.frame({ type: 'text_delta', data: 'before' });
  await before.next(({ data }) => data === 'before');
  const second = await restart(() => {
    guest.frame({ type: 'text_delta', data: 'between' });
  });
  expect(await before.closed).toEqual({ code: 1001, reason: 'server shutting down' });
  const after = await SessionSocket.open(second, session, { afterSeq: 1 });
  guest.state('all of it');
  guest.frame({ type: 'task_completed', status: 'completed', result: 'done' });
  await after.next(({ type }) => type === 'task_completed');
  expect(after.frames.map(({ seq, type, data }) => [seq, data ?? type])).toEqual([
    [undefined, 'ready'],
    [2, 'before'],
    [3, 'between'],
    [4, 'task_completed'],
  ]);
  const { turns } = first.controlPlane.sessions;
  await until(() => expect(turns.at(-1)).toMatchObject({ vm_id: vmId, last_seq: 4 }));
  expect(turns.find((turn) => turn.conversation === 'all of it')).toBeDefined();
  // Its credentials are there again, and processes get the newest values.
  await until(() =>
    expect(guest.all('env').at(-1)).toEqual({ type: 'env', env: { GREETING: 'hello' } }),
  );
});

it('a frame that was half written when the worker was killed comes again from the guest', async () => {
  const { session } = await first.startSession();
  guest.frame({ type: 'text_delta', data: 'whole' });
  await guest.drained();
  const second = await restart(async () => {
    const [path = ''] = await segments(session);
    await appendFile(path, '2 {"type":"text_delta","data":"ha');
    guest.frame({ type: 'text_delta', data: 'half' });
  });
  const client = await SessionSocket.open(second, session, { afterSeq: 0 });
  await client.next(({ data }) => data === 'half');
  expect(client.frames.map(({ seq, data }) => [seq, data])).toEqual([
    [undefined, undefined],
    [1, 'whole'],
    [2, 'half'],
  ]);
  await guest.drained();
});

it('what clients had sent and the guest had not received arrives once', async () => {
  const { session } = await first.startSession();
  const client = await SessionSocket.open(first, session);
  client.send({ type: 'exec', command: 'first' });
  await until(() => expect(guest.all('client')).toHaveLength(1));
  guest.open = false;
  guest.cut();
  client.send({ type: 'exec', command: 'second' });
  client.send({ type: 'exec', command: 'third' });
  client.send({ type: 'ping' });
  await client.next(({ type }) => type === 'pong');
  const executed: unknown[] = [];
  guest.onClient = (frame) => executed.push('command' in frame ? frame.command : frame.type);
  const second = await restart(() => {
    guest.open = true;
  });
  await until(() => expect(executed).toEqual(['second', 'third']));
  const again = await SessionSocket.open(second, session);
  again.send({ type: 'exec', command: 'fourth' });
  await until(() => expect(executed).toEqual(['second', 'third', 'fourth']));
  expect(guest.all('client').at(-1)).toMatchObject({ c: 4 });
});

it('a turn whose commit was under way is committed by the next worker, then shown', async () => {
  const { session } = await first.startSession();
  const { sessions } = first.controlPlane;
  const gate = Promise.withResolvers<void>();
  sessions.gate = gate.promise;
  const client = await SessionSocket.open(first, session);
  client.send({ type: 'task', prompt: 'a' });
  await until(() => expect(sessions.commitsAsked).toBe(1));
  sessions.gate = Promise.resolve();
  const second = await restart();
  const again = await SessionSocket.open(second, session, { afterSeq: 0 });
  await again.next(({ type }) => type === 'task_completed');
  expect(again.seqs).toEqual([1, 2, 3]);
  expect(sessions.turns.find(({ conversation }) => conversation === 'a')).toBeDefined();
  gate.resolve();
});

it('a paused session can be attached to', async () => {
  const { session, vmId } = await first.startSession();
  await first.json('POST', `/sandboxes/${vmId}/pause`);
  const second = await restart();
  const client = await SessionSocket.open(second, session);
  expect(await second.json('GET', `/sandboxes/${vmId}`)).toMatchObject({
    body: { state: 'running', active_connections: 1 },
  });
  client.send({ type: 'task', prompt: 'awake?' });
  await client.next(({ type }) => type === 'task_completed');
});

it('frames of a session whose VM died meanwhile are still handed over', async () => {
  const { session } = await first.startSession();
  guest.frame({ type: 'text_delta', data: 'last words' });
  await guest.drained();
  await restart(() => first.host.live[0]?.die());
  const { sessions } = first.controlPlane;
  await until(() =>
    expect(sessions.turns.at(-1)).toMatchObject({ session, first_seq: 1, last_seq: 1 }),
  );
  await until(async () => expect(await readdir(join(first.dataDir, 'sessions'))).toEqual([]));
});

it('a session whose sandbox was about to end is saved before it does', async () => {
  const { session, vmId } = await first.startSession();
  guest.conversation = 'not yet saved';
  await restart(() => {
    const vm = first.host.vmOf(vmId);
    vm.labels = { ...vm.labels, end_reason: 'idle_timeout' };
  });
  await until(() => expect(first.host.live).toEqual([]));
  expect(first.controlPlane.sessions.turns.at(-1)).toMatchObject({
    session,
    conversation: 'not yet saved',
  });
});

it('nothing of a session that ended stays on disk', async () => {
  const { vmId } = await first.startSession();
  await first.json('DELETE', `/sandboxes/${vmId}`);
  expect(await readdir(join(first.dataDir, 'sessions'))).toEqual([]);
});
