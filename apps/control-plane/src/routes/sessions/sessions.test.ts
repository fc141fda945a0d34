import type { EndReason } from '@svc/contract';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;
let key: string;

beforeAll(async () => {
  harness = await Harness.start();
  account = await harness.signUp();
  key = account.key;
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
});

const list = async (query = '') =>
  (await harness.call('GET', `/v1/sessions${query}`, { key })).body as {
    sessions: { chat_session_id: string }[];
    total: number;
  };
const remove = (id: string) => harness.call('DELETE', `/v1/sessions/${id}`, { key });

describe('a list of sessions', () => {
  test('is paged, newest first, and limited to one tenant', async () => {
    const stranger = await harness.signUp();
    await harness.addBundle(stranger.key, 'llm', { LLM_API_KEY: 'k' });
    await harness.startSession(stranger.key);
    const ids: string[] = [];
    for (let index = 0; index < 3; index += 1) ids.unshift((await harness.startSession(key)).id);
    const all = await list();
    expect(all.sessions.map((session) => session.chat_session_id)).toEqual(ids);
    expect(all.total).toBe(3);
    const page = await list('?limit=1&offset=1');
    expect(page.sessions.map((session) => session.chat_session_id)).toEqual([ids[1]]);
    expect(page.total).toBe(3);
    expect((await list('?offset=9')).sessions).toEqual([]);
  });

  test.each(['limit=0', 'limit=101', 'offset=-1', 'limit=x'])('refuses %s', async (query) => {
    const answer = await harness.call('GET', `/v1/sessions?${query}`, { key });
    expect(answer).toMatchObject({ status: 400, body: { code: 'validation_failed' } });
  });
});

test.each(['none', '%00', '00000000-0000-7000-8000-000000000000'])(
  'a session called %s is 404',
  async (id) => {
    for (const method of ['GET', 'DELETE']) {
      const answer = await harness.call(method, `/v1/sessions/${id}`, { key });
      expect(answer).toMatchObject({ status: 404, body: { code: 'session_not_found' } });
    }
  },
);

describe('a session ends as its sandbox ends', () => {
  test.each<[EndReason, string]>([
    ['deleted', 'completed'],
    ['idle_timeout', 'completed'],
    ['drained', 'completed'],
    ['agent_exited', 'completed'],
    ['credits_exhausted', 'completed'],
    ['max_lifetime', 'expired'],
    ['worker_lost', 'failed'],
    ['boot_failed', 'failed'],
  ])('%s: %s', async (reason, status) => {
    const byEvent = await harness.startSession(key);
    const byHeartbeat = await harness.startSession(key);
    await worker.event(harness.plane.url, worker.end(byEvent.vmId, reason));
    worker.end(byHeartbeat.vmId, reason);
    await worker.heartbeat(harness.plane.url);
    for (const { id } of [byEvent, byHeartbeat]) {
      const session = await harness.session(key, id);
      expect(session).toMatchObject({ status });
      expect(Date.parse(String(session.ended_at))).toBeGreaterThan(0);
    }
    expect((await harness.sql.query('select 1 from agent_secrets')).rowCount).toBe(0);
  });

  test('deleted by its sandbox: completed', async () => {
    const { id, vmId } = await harness.startSession(key);
    await harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key });
    expect(await harness.session(key, id)).toMatchObject({ status: 'completed' });
  });

  test('gone from its worker: failed', async () => {
    const { id } = await harness.startSession(key);
    worker.sandboxes.clear();
    await harness.sql.query(`update sandboxes set placed_at = now() - interval '1 hour'`);
    await worker.heartbeat(harness.plane.url);
    expect(await harness.session(key, id)).toMatchObject({ status: 'failed' });
  });

  test('not by the end of an earlier sandbox', async () => {
    const { id, vmId } = await harness.startSession(key);
    // As if it were being resumed: the sweeper ends any other active session without a sandbox.
    await harness.sql.query(
      `update sessions set generation = 2, busy_until = now() + interval '1 minute'`,
    );
    await worker.event(harness.plane.url, worker.end(vmId, 'idle_timeout'));
    expect(await harness.session(key, id)).toMatchObject({ status: 'active' });
  });
});

describe('DELETE', () => {
  test('ends a session gracefully, and changes nothing when repeated', async () => {
    const { id, vmId } = await harness.startSession(key);
    const answer = await remove(id);
    expect(answer).toMatchObject({
      status: 200,
      body: { chat_session_id: id, status: 'completed' },
    });
    expect(worker.sandboxes.get(vmId)?.state).toBe('destroyed');
    expect(await remove(id)).toMatchObject({ status: 200, body: { status: 'completed' } });
  });

  test('keeps the status of a session that ended otherwise', async () => {
    const { id, vmId } = await harness.startSession(key);
    await worker.event(harness.plane.url, worker.end(vmId, 'max_lifetime'));
    expect(await remove(id)).toMatchObject({ status: 200, body: { status: 'expired' } });
  });

  test('does not wait for a concurrent start', async () => {
    const { id } = await harness.startSession(key);
    await harness.sql.query(
      `update sessions set busy_by = gen_random_uuid(), busy_until = now() + interval '1 minute'`,
    );
    const answer = await remove(id);
    expect(answer).toMatchObject({ status: 409, body: { code: 'session_starting' } });
    expect(answer.headers.get('retry-after')).toBe('1');
  });

  test('is refused when the worker does not answer, and can be repeated', async () => {
    const { id } = await harness.startSession(key);
    worker.failures.set('destroy', 'shutting_down');
    expect(await remove(id)).toMatchObject({ status: 503, body: { code: 'worker_unreachable' } });
    worker.failures.clear();
    expect(await remove(id)).toMatchObject({ status: 200, body: { status: 'completed' } });
  });

  test('ends a session whose start was interrupted', async () => {
    const startAndRemove = async () => {
      const { id } = await harness.startSession(key);
      await harness.sql.query('truncate sandboxes cascade');
      return remove(id);
    };
    // The sweeper may come first, which ends it as failed.
    await expect.poll(startAndRemove).toMatchObject({ status: 200, body: { status: 'completed' } });
  });
});
