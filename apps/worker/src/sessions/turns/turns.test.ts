import { ServiceError } from '@svc/contract';
import { describe, expect, it } from 'vitest';
import { SessionLab, useSessionLab } from '../../../test/session-lab.ts';
import type { SessionStoreDouble } from '../../../test/session-store-double.ts';

const lab = useSessionLab();

/** The latest commit of the agent's state. */
const saved = () => lab().store.turns.findLast(({ conversation }) => conversation !== undefined);
const completed = (frame: { type: string }) => frame.type === 'task_completed';

describe('the end of a turn', () => {
  it('is shown only after the turn is committed', async () => {
    const { store } = lab();
    const { session, vmId } = await lab().harness.startSession();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    const client = await lab().attach(session);
    client.send({ type: 'task', prompt: 'a' });
    await expect.poll(() => store.commitsAsked).toBe(1);
    // Frames outside the turn are shown in the meantime.
    await lab().harness.json('POST', `/sandboxes/${vmId}/cancel`);
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
    // The frames behind the turn are committed in the background.
    await expect.poll(() => store.frames.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  });

  it('waits for an unavailable control plane', async () => {
    const { client } = await lab().startAttached();
    lab().harness.controlPlane.broken = true;
    client.send({ type: 'task', prompt: 'a' });
    await client.next(({ type }) => type === 'text_delta');
    await expect.poll(() => lab().guest.unacknowledged).toBe(2);
    lab().harness.controlPlane.broken = false;
    await client.next(completed);
    expect(client.types).not.toContain('error');
    expect(lab().store.turns[0]).toMatchObject({ conversation: 'a' });
  });

  it('is reported as not saved after a failure, and the next turn saves everything', async () => {
    // This also bounds the commit that succeeds.
    await using impatient = await SessionLab.start({ agentTimeouts: { commitMs: 5_000 } });
    const { store } = impatient;
    const { client } = await impatient.startAttached();
    store.failure = new ServiceError('internal_error');
    client.send({ type: 'task', prompt: 'a' });
    await client.next(completed);
    expect(client.frames.slice(-2)).toMatchObject([
      { type: 'error', code: 'state_not_saved' },
      { type: 'task_completed' },
    ]);
    store.failure = undefined;
    client.send({ type: 'task', prompt: 'b' });
    await expect
      .poll(() => client.types.filter((type) => type === 'task_completed').length)
      .toBe(2);
    await expect.poll(() => store.frames.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(store.turns.map(({ conversation }) => conversation)).toContain('b');
  });

  it('is never shown for a superseded session, whose sandbox ends', async () => {
    const { vmId, client } = await lab().startAttached();
    lab().store.failure = new ServiceError('stale_generation');
    client.send({ type: 'task', prompt: 'a' });
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
    expect(client.types).not.toContain('task_completed');
    await expect
      .poll(() => lab().harness.json('GET', `/sandboxes/${vmId}`))
      .toMatchObject({
        body: { state: 'destroyed' },
      });
    expect(lab().guest.all('save')).toEqual([]);
  });

  it('is reported as not saved when the control plane does not know the session, whose sandbox stays', async () => {
    const { vmId, client } = await lab().startAttached();
    lab().store.failure = new ServiceError('session_not_found');
    client.send({ type: 'task', prompt: 'a' });
    await client.next(completed);
    expect(client.frames.slice(-2)).toMatchObject([
      { type: 'error', code: 'state_not_saved' },
      { type: 'task_completed' },
    ]);
    const { heartbeats } = lab().harness.controlPlane;
    const before = heartbeats.length;
    await expect.poll(() => heartbeats.length).toBeGreaterThan(before + 2);
    expect(await lab().harness.json('GET', `/sandboxes/${vmId}`)).toMatchObject({
      body: { state: 'running' },
    });
    expect(lab().harness.host.vmOf(vmId).isGone).toBe(false);
  });

  it('saves the files when they have changed', async () => {
    const { store } = lab();
    const { session, vmId } = await lab().harness.startSession();
    const vm = lab().harness.host.vmOf(vmId);
    const archive = Buffer.alloc(3_000_000, 'tar');
    vm.files.set('/var/lib/svc/saved.tar', archive);
    const client = await lab().attach(session);
    lab().guest.turn('a', 'a', true);
    await client.next(completed);
    const id = store.turns[0]?.files_id ?? '';
    expect(store.files.get(id)?.equals(archive)).toBe(true);
    lab().guest.turn('b', 'b', false);
    await expect.poll(() => store.turns.map((turn) => turn.conversation)).toContain('b');
    expect(store.files.size).toBe(1);
  });

  it('saves the conversation when the files cannot be fetched, and the files with the next turn', async () => {
    const { store } = lab();
    const { vmId, client } = await lab().startAttached();
    lab().guest.turn('a', 'a', true);
    await client.next(completed);
    expect(client.types).toContain('error');
    expect(store.turns[0]).toMatchObject({ conversation: 'a' });
    expect(store.turns[0]).not.toHaveProperty('files_id');
    lab().harness.host.vmOf(vmId).files.set('/var/lib/svc/saved.tar', Buffer.from('tar'));
    lab().guest.turn('b', 'b', false);
    await expect
      .poll(() => store.turns.find(({ conversation }) => conversation === 'b'))
      .toHaveProperty('files_id');
  });
});

describe('a turn for whose files there is no room', () => {
  it.each([
    [
      'when they are committed',
      (store: SessionStoreDouble, refusal?: ServiceError) => {
        store.filesFailure = refusal;
      },
    ],
    [
      'when they are uploaded',
      ({ chunks }: SessionStoreDouble, refusal?: ServiceError) => {
        chunks.refusal = refusal;
      },
    ],
  ])(
    'is completed without them, says what to do, and keeps them as soon as there is room, if refused %s',
    async (_, refuse) => {
      const { store, harness, guest } = lab();
      const { vmId, client } = await lab().startAttached();
      harness.host.vmOf(vmId).files.set('/var/lib/svc/saved.tar', Buffer.from('tar'));
      refuse(store, new ServiceError('session_storage_full'));
      guest.turn('a', 'a', true);
      await client.next(completed);
      expect(client.frames.find(({ type }) => type === 'error')).toMatchObject({
        code: 'session_storage_full',
        message: expect.stringContaining('Erase a session'),
      });
      expect(store.turns[0]).toMatchObject({ conversation: 'a' });
      expect(store.turns[0]).not.toHaveProperty('files_id');
      refuse(store);
      // No file has changed since.
      guest.turn('b', 'b', false);
      await expect
        .poll(() => store.turns.find(({ conversation }) => conversation === 'b'))
        .toHaveProperty('files_id');
      expect(await harness.metrics()).toMatch(
        /commit_duration_seconds_count\{outcome="storage_full"\} 1/,
      );
    },
  );
});

describe('a turn for which there is no room', () => {
  it('is completed with an error, its frames do not pile up, and the next one is kept once there is room', async () => {
    const { store, guest } = lab();
    const { client } = await lab().startAttached();
    store.full = true;
    guest.turn('a', 'a', true);
    await client.next(completed);
    expect(client.frames.map(({ type }) => type).slice(-2)).toEqual(['error', 'task_completed']);
    expect(client.frames.find(({ type }) => type === 'error')).toMatchObject({
      code: 'session_storage_full',
    });
    const shown = Number(client.frames.at(-1)?.seq);
    await expect.poll(() => store.turns.at(-1)?.last_seq).toBe(shown);
    expect(store.turns.map(({ frames, conversation }) => [frames, conversation])).toEqual(
      store.turns.map(() => ['', undefined]),
    );
    store.full = false;
    guest.turn('b', 'b', false);
    await expect
      .poll(() => store.turns.find(({ conversation }) => conversation === 'b'))
      .toBeDefined();
    expect(store.frames[0]?.seq).toBe(shown + 1);
  });
});

describe('the end of the sandbox', () => {
  it('saves and commits the agent’s state before the VM is destroyed', async () => {
    const { guest } = lab();
    const { vmId, client } = await lab().startAttached();
    guest.frame({ type: 'text_delta', data: 'half a thought' });
    await client.next(({ seq }) => seq === 1);
    guest.conversation = 'as it stands';
    const vm = lab().harness.host.vmOf(vmId);
    let alive = false;
    guest.onSave = () => {
      alive = !vm.isGone;
      guest.state('as it stands');
    };
    expect(await lab().harness.json('DELETE', `/sandboxes/${vmId}`)).toMatchObject({
      status: 200,
      body: { state: 'destroyed' },
    });
    expect(alive).toBe(true);
    expect(saved()).toMatchObject({
      conversation: 'as it stands',
      first_seq: 1,
      last_seq: 1,
    });
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
  });

  it('resumes a paused agent to save its state', async () => {
    const { harness } = lab();
    const { vmId } = await harness.startSession();
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    await harness.json('DELETE', `/sandboxes/${vmId}`);
    expect(saved()).toMatchObject({ conversation: 'nothing yet' });
  });

  it('waits for a silent guest and an unavailable control plane for a limited time only', async () => {
    await using impatient = await SessionLab.start({
      agentTimeouts: { saveMs: 1_000, finishMs: 3_000 },
    });
    const { harness, guest } = impatient;
    const { vmId, client } = await impatient.startAttached();
    guest.frame({ type: 'text_delta', data: 'x' });
    await client.next(({ seq }) => seq === 1);
    guest.onSave = () => undefined;
    harness.controlPlane.broken = true;
    expect(await harness.json('DELETE', `/sandboxes/${vmId}`)).toMatchObject({ status: 200 });
    expect(harness.host.live).toEqual([]);
  });

  it('commits the frames of a VM that died during a turn', async () => {
    const { client } = await lab().startAttached();
    lab().guest.frame({ type: 'task_started' });
    lab().guest.frame({ type: 'text_delta', data: 'x' });
    await client.next(({ seq }) => seq === 2);
    lab().harness.host.live[0]?.die();
    await client.closed;
    await expect.poll(() => lab().store.frames.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(saved()).toBeUndefined();
  });

  it('saves the state on an orderly shutdown too', async () => {
    const { client } = await lab().startAttached();
    lab().guest.conversation = 'before the end';
    await lab().harness.worker.close({ keepSandboxes: false });
    expect(await client.closed).toEqual({ code: 1001, reason: 'server shutting down' });
    expect(saved()).toMatchObject({ conversation: 'before the end' });
  });
});

describe('a resumed session', () => {
  it('continues with its conversation, files and numbering', async () => {
    const { harness, store } = lab();
    const { session, vmId } = await harness.startSession();
    harness.host.vmOf(vmId).files.set('/var/lib/svc/saved.tar', Buffer.from('my files'));
    const before = await lab().attach(session);
    lab().guest.turn('what was said', 'a', true);
    await before.next(completed);
    await harness.json('DELETE', `/sandboxes/${vmId}`);
    store.states.set(session, store.stateOf(session));

    const second = await lab().addGuest();
    let restored: Buffer | undefined;
    second.onConfigure = (socket) => {
      restored = harness.host.live[0]?.files.get('/var/lib/svc/restore.tar');
      socket.write('{"type":"configured"}\n');
    };
    await harness.startSession({ chat_session_id: session, generation: 2, resumed: true });
    expect(second.setup).toMatchObject({ conversation: 'what was said', restoreFiles: true });
    expect(restored?.toString()).toBe('my files');
    const after = await lab().attach(session, { afterSeq: 1 });
    expect(after.frames[0]).toMatchObject({ type: 'ready', resumed: true, last_seq: 3 });
    second.turn('and on', 'b');
    await after.next(({ seq }) => seq === 6);
    expect(after.seqs).toEqual([2, 3, 4, 5, 6]);
    expect(after.frames.slice(1, 3)).toEqual(before.frames.slice(2, 4));
    await expect.poll(() => store.turns.at(-1)).toMatchObject({ generation: 2, last_seq: 6 });
  });

  it('is not started when its state cannot be fetched, and leaves nothing behind', async () => {
    const request = lab().harness.startSession({ resumed: true });
    await expect(request).rejects.toThrow();
    await expect.poll(() => lab().harness.host.live).toEqual([]);
    expect(lab().guest.setup).toBeUndefined();
  });
});
