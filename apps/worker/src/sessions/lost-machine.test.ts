import { rm } from 'node:fs/promises';
import { LIMITS, ServiceError } from '@svc/contract';
import { expect, it } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { useSessionLab } from '../../test/session-lab.ts';
import { SessionSocket } from '../../test/session-socket.ts';

const BLOCK = LIMITS.frameNumbersBlock;
const lab = useSessionLab();

/** A worker on another machine, with the same control plane. */
async function replacement() {
  const { controlPlane } = lab().harness;
  const guest = await lab().addGuest();
  const harness = await Harness.start({ controlPlane, guest, withoutControlPlane: true });
  await harness.worker.ready;
  return {
    harness,
    guest,
    [Symbol.asyncDispose]: async () => {
      await harness.worker.close({ keepSandboxes: false });
      await rm(harness.dataDir, { recursive: true });
    },
  };
}

/** Resumes a session on a worker. */
async function resume(harness: Harness, session: string, generation: number): Promise<void> {
  const { store } = lab();
  store.states.set(session, store.stateOf(session));
  await harness.startSession({ chat_session_id: session, generation, resumed: true });
}

it('does not use a number again that a client has seen, though the frame was never saved', async () => {
  const { store } = lab();
  const { session, client } = await lab().startAttached();
  const first = lab().guest;
  expect(client.frames[0]).toMatchObject({ type: 'ready', generation: 1, last_seq: 0 });
  first.frame({ type: 'text_delta', data: 'saved' });
  first.state('one');
  await expect.poll(() => store.turns).toHaveLength(1);
  store.failure = new ServiceError('database_unavailable');
  for (const data of ['seen', 'seen too']) first.frame({ type: 'text_delta', data });
  await client.next(({ seq }) => seq === 3);

  store.failure = undefined;
  await using other = await replacement();
  await resume(other.harness, session, 2);
  const again = await SessionSocket.open(other.harness, session, { afterSeq: 0 });
  const seen = await SessionSocket.open(other.harness, session, { afterSeq: 3 });
  // The machine that was given up as lost is still alive and goes on.
  first.frame({ type: 'text_delta', data: 'zombie' });
  other.guest.frame({ type: 'text_delta', data: 'after' });
  other.guest.frame({ type: 'text_delta', data: 'later' });
  await client.next(({ data }) => data === 'zombie');
  for (const socket of [again, seen]) {
    await socket.next(({ data }) => data === 'later');
    expect(socket.frames[0]).toMatchObject({ type: 'ready', generation: 2, last_seq: BLOCK });
    // No frame has that number: this is the last that a client gets before live ones.
    expect(socket.frames[0]).toMatchObject({ previous_seq: 1 });
  }
  expect(client.seqs).toEqual([1, 2, 3, 4]);
  expect(again.seqs).toEqual([1, BLOCK + 1, BLOCK + 2]);
  expect(seen.seqs).toEqual([BLOCK + 1, BLOCK + 2]);
  expect(seen.frames[1]).toMatchObject({ data: 'after', previous_seq: 1 });
  expect(seen.frames[2]).not.toHaveProperty('previous_seq');
});

it('continues with the next number after a start that ended in order, even with nothing to save', async () => {
  const { harness, guest, store } = lab();
  const { session, vmId } = await harness.startSession();
  guest.frame({ type: 'text_delta', data: 'one' });
  await guest.drained();
  await harness.json('DELETE', `/sandboxes/${vmId}`);
  expect(store.numbers.get(session)).toMatchObject({ reserved_seq: 1 });
  for (const generation of [2, 3]) {
    await using other = await replacement();
    await resume(other.harness, session, generation);
    const client = await SessionSocket.open(other.harness, session, { afterSeq: 0 });
    expect(client.frames[0]).toMatchObject({ generation, last_seq: 1 });
    await client.next(({ seq }) => seq === 1);
    if (generation === 2) continue;
    other.guest.frame({ type: 'text_delta', data: 'two' });
    await client.next(({ data }) => data === 'two');
    expect(client.seqs).toEqual([1, 2]);
    expect(client.frames.at(-1)).not.toHaveProperty('previous_seq');
  }
});

it('stores the end of a session before its end is reported', async () => {
  const { harness, guest, store } = lab();
  const { session, vmId } = await harness.startSession();
  guest.frame({ type: 'text_delta', data: 'one' });
  await guest.drained();
  const reported = () =>
    harness.controlPlane.events.some(
      (event) => event.vm_id === vmId && event.state === 'destroyed',
    );
  const gate = Promise.withResolvers<void>();
  store.gate = gate.promise;
  const ending = harness.json('DELETE', `/sandboxes/${vmId}`);
  await expect.poll(() => store.commitsAsked).toBeGreaterThan(0);
  expect(reported()).toBe(false);
  gate.resolve();
  await ending;
  expect(store.numbers.get(session)).toMatchObject({ reserved_seq: 1 });
  await expect.poll(reported).toBe(true);
});
