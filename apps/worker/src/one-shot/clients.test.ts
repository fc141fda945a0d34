import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { uuidOf } from '@svc/contract';
import { describe, expect, it } from 'vitest';
import { ONE_SHOT } from '../../test/placement.ts';
import { useSessionLab } from '../../test/session-lab.ts';
import { hopToken, SessionSocket } from '../../test/session-socket.ts';

const lab = useSessionLab();
const INTERACTIVE = { ...ONE_SHOT, interactive: true };
const EXITED = { code: 1000, reason: 'agent exited' };

async function start(agent = ONE_SHOT): Promise<{ id: string; uuid: string }> {
  const id = await lab().harness.create({ agent });
  return { id, uuid: uuidOf(id) };
}

async function recordOf(id: string) {
  return (await lab().harness.json('GET', `/sandboxes/${id}`)).body;
}

/** A turn whose frames name the agent that sent them. */
function turnOf(agent: string): void {
  const { guest } = lab();
  guest.frame({ type: 'task_started', agent });
  guest.frame({ type: 'text_delta', data: 'a', agent });
  guest.frame({ type: 'task_completed', status: 'completed', result: 'a', agent });
}

describe('a client of a one-shot agent', () => {
  it('sees its frames live and from the start, and is disconnected once it exits', async () => {
    const { guest } = lab();
    const { id, uuid } = await start();
    turnOf('x');
    const client = await lab().attach(uuid, { afterSeq: 0 });
    expect(client.frames[0]).toMatchObject({ type: 'ready', agent: 'codex', model: 'gpt-test' });
    guest.frame({ type: 'text_delta', data: 'live' });
    guest.exited(0);
    expect(await client.closed).toEqual(EXITED);
    const types = ['ready', 'task_started', 'text_delta', 'task_completed', 'text_delta'];
    expect(client.types).toEqual(types);
    expect(client.seqs).toEqual([1, 2, 3, 4]);
    expect(await recordOf(id)).toMatchObject({ agent_status: 'completed', agent_exit_code: 0 });
    await expect.poll(() => recordOf(id)).toMatchObject({ active_connections: 0 });
  });

  it('gets the frames that it has missed after the exit too, for a restarted worker too', async () => {
    const { guest } = lab();
    const { id, uuid } = await start();
    turnOf('x');
    guest.exited(0);
    await expect.poll(() => recordOf(id)).toMatchObject({ agent_status: 'completed' });
    for (const worker of ['the same', 'a restarted']) {
      if (worker === 'a restarted') await lab().restart();
      const late = await lab().attach(uuid, { afterSeq: 1 });
      expect(await late.closed, worker).toEqual(EXITED);
      expect(late.seqs, worker).toEqual([2, 3]);
    }
  });

  it('cannot give it another task, but can run commands and interrupt it', async () => {
    const { guest } = lab();
    const { uuid } = await start();
    const client = await lab().attach(uuid);
    client.send({ type: 'task', prompt: 'more', id: 't1' });
    const code = 'task_not_accepted';
    expect(await client.next(({ type }) => type === 'error')).toMatchObject({ code, id: 't1' });
    client.send({ type: 'exec', command: 'true' });
    client.send({ type: 'interrupt' });
    await expect
      .poll(() => guest.all('client').map(({ frame }) => frame.type))
      .toEqual(['exec', 'interrupt']);
  });

  it('continues after a restart of the worker, with the next number', async () => {
    const { guest } = lab();
    const { uuid } = await start();
    guest.frame({ type: 'text_delta', data: 'before' });
    await guest.drained();
    await lab().restart(() => guest.frame({ type: 'text_delta', data: 'between' }));
    const client = await lab().attach(uuid, { afterSeq: 0 });
    guest.frame({ type: 'text_delta', data: 'after' });
    await client.next(({ data }) => data === 'after');
    expect(client.frames.slice(1).map(({ seq, data }) => [seq, data])).toEqual([
      [1, 'before'],
      [2, 'between'],
      [3, 'after'],
    ]);
  });

  it('is told when the agent is lost', async () => {
    const { harness } = lab();
    const { id, uuid } = await start();
    const client = await lab().attach(uuid);
    harness.host.vmOf(id).die();
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
    await expect.poll(() => recordOf(id)).toMatchObject({ agent_status: 'failed' });
  });

  it('needs a token for this sandbox', async () => {
    const { harness } = lab();
    const first = await start();
    await lab().addGuest();
    const second = await start();
    const token = await hopToken(harness, first.uuid);
    const refusal = await SessionSocket.refusal(harness, second.uuid, { token });
    expect(refusal).toMatchObject({ status: 401 });
  });
});

describe('a client of an agent without a task', () => {
  it('gives it any number of tasks', async () => {
    const { id, uuid } = await start(INTERACTIVE);
    const client = await lab().attach(uuid);
    for (const prompt of ['one', 'two']) {
      client.send({ type: 'task', prompt });
      await client.next(({ result }) => result === `did ${prompt}`);
    }
    expect(client.seqs).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await recordOf(id)).toMatchObject({ agent_status: 'running', active_connections: 1 });
  });

  it('sees no frame that names an agent in wire version 1', async () => {
    const { uuid } = await start({ ...INTERACTIVE, wire_version: 1 });
    const client = await lab().attach(uuid);
    turnOf('x');
    await client.next(({ type }) => type === 'task_completed');
    expect(client.frames).toHaveLength(4);
    for (const frame of client.frames) expect(frame).not.toHaveProperty('agent');
  });

  it('sees a cancel, and the end of the sandbox', async () => {
    const { harness } = lab();
    const { id, uuid } = await start(INTERACTIVE);
    const client = await lab().attach(uuid);
    const reason = 'admin_action';
    expect(await harness.json('POST', `/sandboxes/${id}/cancel`, { reason })).toMatchObject({
      body: { cancelled: true },
    });
    expect(await client.next(({ type }) => type === 'system')).toMatchObject({
      event: 'cancel',
      reason,
    });
    await harness.json('DELETE', `/sandboxes/${id}`);
    expect(await client.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
    expect(await readdir(join(harness.dataDir, 'sessions'))).toEqual([]);
    expect(lab().store.commitsAsked).toBe(0);
  });
});
