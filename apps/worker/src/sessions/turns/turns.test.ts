import { ServiceError } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Harness } from '../../../test/harness.ts';
import { ScriptedGuest } from '../../../test/scripted-guest.ts';
import { SessionSocket } from '../../../test/session-socket.ts';
import type { SessionStoreDouble } from '../../../test/session-store-double.ts';
import { until } from '../../../test/until.ts';

let guest: ScriptedGuest;
let harness: Harness;
let store: SessionStoreDouble;

beforeEach(async () => {
  guest = await ScriptedGuest.listen();
  harness = await Harness.start({
    guest,
    sessionTimes: { commitMs: 1_000, saveMs: 1_000, finishMs: 3_000 },
  });
  store = harness.controlPlane.sessions;
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
  await guest[Symbol.asyncDispose]();
});

const completed = (frame: { type: string }) => frame.type === 'task_completed';

describe('the end of a turn', () => {
  it('is shown only when the turn is the control plane’s', async () => {
    const { session, vmId } = await harness.startSession();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    const client = await SessionSocket.open(harness, session);
    client.send({ type: 'task', prompt: 'a' });
    await until(() => expect(store.commitsAsked).toBe(1));
    // What has nothing to do with the turn goes on meanwhile.
    await harness.json('POST', `/sandboxes/${vmId}/cancel`);
    await client.next(({ event }) => event === 'cancel');
    expect(client.types).toEqual(['ready', 'task_started', 'text_delta', 'system']);
    gate.resolve();
    await client.next(completed);
    expect(store.turns[0]).toMatchObject({
      session,
      generation: 1,
      vm_id: vmId,
      first_seq: 1,
      last_seq: 2,
      conversation: 'a',
    });
    expect(
      store.turns[0]?.frames
        .split('\n')
        .slice(0, 2)
        .map((line) => JSON.parse(line)),
    ).toEqual(client.frames.slice(1, 3));
    // What came behind it follows by itself.
    await until(() => expect(store.frames.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]));
  });

  it('waits for a control plane that is away', async () => {
    const { session } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    harness.controlPlane.broken = true;
    client.send({ type: 'task', prompt: 'a' });
    await client.next(({ type }) => type === 'text_delta');
    await until(() => expect(guest.unacknowledged).toBe(2));
    harness.controlPlane.broken = false;
    await client.next(completed);
    expect(client.types).not.toContain('error');
    expect(store.turns[0]).toMatchObject({ conversation: 'a' });
  });

  it('tells the truth when it could not be saved, and the next one saves all of it', async () => {
    const { session } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    store.failure = new ServiceError('internal_error');
    client.send({ type: 'task', prompt: 'a' });
    await client.next(completed);
    expect(client.frames.slice(-2)).toMatchObject([
      { type: 'error', code: 'state_not_saved' },
      { type: 'task_completed' },
    ]);
    store.failure = undefined;
    client.send({ type: 'task', prompt: 'b' });
    await until(() =>
      expect(client.types.filter((type) => type === 'task_completed').length).toBe(2),
    );
    await until(() => expect(store.frames.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]));
    expect(store.turns.map(({ conversation }) => conversation)).toContain('b');
  });

  it('is never shown of a session that was started anew; its sandbox ends', async () => {
    const { session, vmId } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    store.failure = new ServiceError('stale_generation');
    client.send({ type: 'task', prompt: 'a' });
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
    expect(client.types).not.toContain('task_completed');
    await until(async () =>
      expect(await harness.json('GET', `/sandboxes/${vmId}`)).toMatchObject({
        body: { state: 'destroyed' },
      }),
    );
    expect(guest.all('save')).toEqual([]);
  });

  it('brings the files along when they have changed', async () => {
    const { session, vmId } = await harness.startSession();
    const vm = harness.host.vmOf(vmId);
    const archive = Buffer.alloc(3_000_000, 'tar');
    vm.files.set('/var/lib/svc/saved.tar', archive);
    const client = await SessionSocket.open(harness, session);
    guest.turn('a', 'a', true);
    await client.next(completed);
    const id = store.turns[0]?.files_id ?? '';
    expect(store.files.get(id)?.equals(archive)).toBe(true);
    guest.turn('b', 'b', false);
    await until(() => expect(store.turns.map((turn) => turn.conversation)).toContain('b'));
    expect(store.files.size).toBe(1);
  });

  it('keeps the conversation when the files cannot be had, and gets them the next time', async () => {
    const { session, vmId } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    guest.turn('a', 'a', true);
    await client.next(completed);
    expect(client.types).toContain('error');
    expect(store.turns[0]).toMatchObject({ conversation: 'a' });
    expect(store.turns[0]).not.toHaveProperty('files_id');
    harness.host.vmOf(vmId).files.set('/var/lib/svc/saved.tar', Buffer.from('tar'));
    guest.turn('b', 'b', false);
    await until(() =>
      expect(store.turns.find(({ conversation }) => conversation === 'b')).toHaveProperty(
        'files_id',
      ),
    );
  });
});

describe('the end of the sandbox', () => {
  it('saves what the agent has, and commits it before the VM is gone', async () => {
    const { session, vmId } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    guest.frame({ type: 'text_delta', data: 'half a thought' });
    await client.next(({ seq }) => seq === 1);
    guest.conversation = 'as it stands';
    const vm = harness.host.vmOf(vmId);
    let alive = false;
    guest.onSave = () => {
      alive = !vm.isGone;
      guest.state('as it stands');
    };
    expect(await harness.json('DELETE', `/sandboxes/${vmId}`)).toMatchObject({
      status: 200,
      body: { state: 'destroyed' },
    });
    expect(alive).toBe(true);
    expect(store.turns.at(-1)).toMatchObject({
      conversation: 'as it stands',
      first_seq: 1,
      last_seq: 1,
    });
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
  });

  it('wakes a paused agent for it', async () => {
    const { vmId } = await harness.startSession();
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    await harness.json('DELETE', `/sandboxes/${vmId}`);
    expect(store.turns.at(-1)).toMatchObject({ conversation: 'nothing yet' });
  });

  it('does not wait for ever: not for a guest that is silent, not for a control plane that is away', async () => {
    const { session, vmId } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    guest.frame({ type: 'text_delta', data: 'x' });
    await client.next(({ seq }) => seq === 1);
    guest.onSave = () => undefined;
    harness.controlPlane.broken = true;
    expect(await harness.json('DELETE', `/sandboxes/${vmId}`)).toMatchObject({ status: 200 });
    expect(harness.host.live).toEqual([]);
  });

  it('commits the frames of a VM that died in the middle', async () => {
    const { session } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    guest.frame({ type: 'task_started' });
    guest.frame({ type: 'text_delta', data: 'x' });
    await client.next(({ seq }) => seq === 2);
    harness.host.live[0]?.die();
    await client.closed;
    await until(() => expect(store.frames.map(({ seq }) => seq)).toEqual([1, 2]));
    expect(store.turns.at(-1)).not.toHaveProperty('conversation');
  });

  it('saves on an orderly shutdown too', async () => {
    const { session } = await harness.startSession();
    const client = await SessionSocket.open(harness, session);
    guest.conversation = 'before the end';
    await harness.worker.close({ keepSandboxes: false });
    expect(await client.closed).toEqual({ code: 1001, reason: 'server shutting down' });
    expect(store.turns.at(-1)).toMatchObject({ conversation: 'before the end' });
  });
});

describe('a resumed session', () => {
  it('goes on with its conversation, its files and its numbers', async () => {
    const { session, vmId } = await harness.startSession();
    harness.host.vmOf(vmId).files.set('/var/lib/svc/saved.tar', Buffer.from('my files'));
    const before = await SessionSocket.open(harness, session);
    guest.turn('what was said', 'a', true);
    await before.next(completed);
    await harness.json('DELETE', `/sandboxes/${vmId}`);
    store.states.set(session, store.stateOf(session));

    await using second = await ScriptedGuest.listen();
    let restored: Buffer | undefined;
    harness.host.onRestored = (vm) => {
      vm.agentPort = second.port;
      second.onConfigure = (socket) => {
        restored = vm.files.get('/var/lib/svc/restore.tar');
        socket.write('{"type":"configured"}\n');
      };
    };
    await harness.startSession({ chat_session_id: session, generation: 2, resumed: true });
    expect(second.setup).toMatchObject({ conversation: 'what was said', restoreFiles: true });
    expect(restored?.toString()).toBe('my files');
    const after = await SessionSocket.open(harness, session, { afterSeq: 1 });
    expect(after.frames[0]).toMatchObject({ type: 'ready', resumed: true, last_seq: 3 });
    second.turn('and on', 'b');
    await after.next(({ seq }) => seq === 6);
    expect(after.seqs).toEqual([2, 3, 4, 5, 6]);
    expect(after.frames.slice(1, 3)).toEqual(before.frames.slice(2, 4));
    await until(() => expect(store.turns.at(-1)).toMatchObject({ generation: 2, last_seq: 6 }));
  });

  it('is not started when its state cannot be had, and leaves nothing', async () => {
    const request = harness.startSession({ resumed: true });
    await expect(request).rejects.toThrow();
    await until(() => expect(harness.host.live).toEqual([]));
    expect(guest.setup).toBeUndefined();
  });
});
