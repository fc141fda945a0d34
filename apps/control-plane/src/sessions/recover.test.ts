import { SESSION_TOKEN_HEADER } from '@svc/contract';
import { ComponentDouble, type WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { askAsWorker } from '../../test/ask-as-worker.ts';
import { CLUSTER_SECRET, Harness, type StartedSession } from '../../test/harness.ts';
import { whileLocked } from '../../test/while-locked.ts';
import type { ControlPlane } from '../control-plane.ts';

const runtime = new ComponentDouble('runtime', 'r1', CLUSTER_SECRET);
let harness: Harness;
/** Has received heartbeats for long. */
let plane: ControlPlane;
let listenedMs = 0;
let key: string;
let worker: WorkerDouble;
let other: WorkerDouble;
let session: StartedSession;

beforeAll(async () => {
  harness = await Harness.start();
  plane = await harness.startAnother({}, () => listenedMs);
  key = (await harness.signUp()).key;
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(async () => {
  await plane?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  listenedMs += 31_000;
  await harness.reset();
  worker = await harness.addWorker('w1');
  session = await harness.startSession(key);
  other = await harness.addWorker('w2');
  await harness.addWorker('w3');
});

const recover = (as: Pick<WorkerDouble, 'ask'> = runtime, id = session.id) =>
  askAsWorker(as, plane.url, 'POST', `/sessions/${id}/recover`, undefined, {
    [SESSION_TOKEN_HEADER]: String(session.access.jwt),
  });
const record = () => harness.session(key, session.id);

/** As if the workers had sent no heartbeat for this long. */
async function silence(seconds: number, ...workers: WorkerDouble[]): Promise<void> {
  await harness.sql.query(
    'update workers set heartbeat_at = now() - make_interval(secs => $1) where worker_id = any($2)',
    [seconds, workers.map(({ id }) => id)],
  );
}

test('a session whose worker is lost goes on elsewhere, as long as it would have', async () => {
  const before = await record();
  await silence(31, worker);
  const { status, body } = await recover();
  expect(status).toBe(200);
  expect(body).toMatchObject({ status: 'active', chat_session_id: session.id });
  const { worker: reached } = body as { worker: { worker_id: string; vm_id: string } };
  expect(reached.worker_id).not.toBe(worker.id);
  expect(reached.vm_id).not.toBe(session.vmId);
  const after = await record();
  expect(after).toMatchObject({ status: 'active', vm_id: reached.vm_id });
  const [ends, ended] = [before, after].map(({ expires_at }) => Date.parse(String(expires_at)));
  expect(Math.abs((ended ?? 0) - (ends ?? Number.NaN))).toBeLessThan(2_000);
  const old = await harness.call('GET', `/v1/sandboxes/${session.vmId}`, { key });
  expect(old.body).toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
});

test('a worker that comes back is told to destroy its sandbox', async () => {
  await silence(31, worker);
  await recover();
  const answer = await worker.heartbeat(plane.url);
  expect(await answer.json()).toMatchObject({
    destroy: [{ vm_id: session.vmId }],
  });
});

test('of many clients that come back at once, one has the session started', async () => {
  await silence(31, worker);
  const answers = await Promise.all(Array.from({ length: 8 }, () => recover()));
  const started = answers.filter(({ status }) => status === 200);
  expect(started.length).toBeGreaterThan(0);
  for (const { status, code } of answers) {
    if (status !== 200) expect(code).toBe('session_starting');
  }
  const { rows } = await harness.sql.query('select count(*)::int as starts from sandboxes');
  expect(rows).toEqual([{ starts: 2 }]);
});

test('a session whose sandbox was lost with its worker goes on elsewhere', async () => {
  await worker.event(plane.url, worker.end(session.vmId, 'worker_lost'));
  expect(await record()).toMatchObject({ status: 'failed' });
  expect((await recover()).status).toBe(200);
  expect(await record()).toMatchObject({ status: 'active' });
});

describe('while one client has a session started elsewhere, another does not see it as ended', () => {
  const lose = () => worker.event(plane.url, worker.end(session.vmId, 'worker_lost'));
  /** What another client finds, behind what happens while the start is prepared. */
  async function seenMeanwhile(happens: () => Promise<unknown> = async () => undefined) {
    let seen: unknown;
    const started = await whileLocked(harness, {
      lock: 'lock table secret_bundles in access exclusive mode',
      begin: recover,
      meanwhile: async () => {
        await happens();
        const { code } = await recover();
        const listed = await harness.call('GET', '/v1/sessions', { key });
        const removed = await harness.call('DELETE', `/v1/sessions/${session.id}`, { key });
        const { status, ended_at } = await record();
        seen = { code, status, ended_at, listed: listed.body, removed: removed.body };
      },
    });
    expect(started.status).toBe(200);
    expect((await record()).vm_id).not.toBe(session.vmId);
    return seen;
  }
  const active = {
    code: 'session_starting',
    status: 'active',
    ended_at: undefined,
    listed: { sessions: [{ status: 'active' }] },
    removed: { code: 'session_starting' },
  };

  test('after its worker was reported lost', async () => {
    await lose();
    expect(await seenMeanwhile()).toMatchObject(active);
  });

  test('although its worker is reported lost meanwhile', async () => {
    await silence(31, worker);
    expect(await seenMeanwhile(lose)).toMatchObject(active);
  });

  test('until the lease of a control plane that has died expires', async () => {
    await lose();
    const ended = await record();
    const lease = (change: string) =>
      harness.sql.query(`update sessions set busy_by = gen_random_uuid(), busy_until = ${change}`);
    await lease(`now() + interval '1 minute'`);
    expect(await record()).toMatchObject({ status: 'active' });
    await lease(`now() - interval '1 millisecond'`);
    expect(await record()).toEqual(ended);
    expect(ended).toMatchObject({ status: 'failed', ended_at: expect.any(String) });
  });

  test('unless it cannot be started', async () => {
    await lose();
    const ended = await record();
    await harness.sql.query('update workers set memory_mib = 1');
    expect(await recover()).toMatchObject({ code: 'no_capacity' });
    expect(await record()).toEqual(ended);
    await harness.sql.query('update workers set memory_mib = 8192');
  });
});

test.each<[string, () => Promise<unknown>]>([
  ['its worker was heard', () => silence(5, worker)],
  ['most workers are silent', () => silence(31, worker, other)],
  [
    'this control plane could not have heard its worker',
    async () => {
      await silence(31, worker);
      listenedMs = 0;
    },
  ],
  ['it was ended', () => harness.call('DELETE', `/v1/sessions/${session.id}`, { key })],
  ['it ended in order', () => worker.event(plane.url, worker.end(session.vmId, 'idle_timeout'))],
  [
    'its time is over',
    async () => {
      await harness.sql.query('update sessions set expires_at = now()');
      await silence(31, worker);
    },
  ],
])('a session stays as it is when %s', async (_, happens) => {
  await happens();
  const before = await record();
  expect((await recover()).status).toBe(200);
  expect(await record()).toEqual(before);
});

describe('a worker that restarts in place', () => {
  const isElsewhere = async () => {
    expect((await recover()).status).toBe(200);
    return (await record()).vm_id !== session.vmId;
  };
  const report = async (draining: boolean) => {
    expect((await worker.heartbeat(plane.url, worker.id, { draining })).status).toBe(200);
  };

  test('keeps its sessions for a minute', async () => {
    await report(true);
    await silence(45, worker);
    expect(await isElsewhere()).toBe(false);
    await silence(61, worker);
    expect(await isElsewhere()).toBe(true);
  });

  test('has no longer than others once it is back', async () => {
    await report(true);
    await report(false);
    await silence(31, worker);
    expect(await isElsewhere()).toBe(true);
  });

  test('has no longer than others if an operator drains it', async () => {
    await report(true);
    await silence(31, worker);
    expect(await isElsewhere()).toBe(false);
    await harness.sql.query(`update workers set drain_requested = true where worker_id = 'w1'`);
    expect(await isElsewhere()).toBe(true);
  });
});

test('a session stays where it is when its worker is heard while its start elsewhere is prepared', async () => {
  const before = await record();
  await silence(31, worker);
  const { status } = await whileLocked(harness, {
    lock: 'lock table secret_bundles in access exclusive mode',
    begin: recover,
    meanwhile: `update workers set heartbeat_at = now() where worker_id = 'w1'`,
  });
  expect(status).toBe(200);
  expect(await record()).toEqual(before);
  const sandbox = await harness.call('GET', `/v1/sandboxes/${session.vmId}`, { key });
  expect(sandbox.body).toMatchObject({ state: 'running' });
});

test('without room elsewhere, the next attempt starts the session', async () => {
  await silence(31, worker);
  await harness.sql.query('update workers set memory_mib = 1');
  expect(await recover()).toMatchObject({ code: 'no_capacity' });
  const tries = () => harness.logLines.filter((line) => line.includes('it goes on elsewhere'));
  const logged = tries().length;
  for (let round = 0; round < 5; round += 1) await recover();
  // The clients that try again and again are a line a minute, however long these take.
  expect(tries().length - logged).toBeLessThan(3);
  // The sweeper may come between two of them, which ends it as failed.
  expect(['active', 'failed']).toContain((await record()).status);
  await harness.sql.query('update workers set memory_mib = 8192');
  expect((await recover()).status).toBe(200);
  const { vm_id } = await record();
  expect(vm_id).not.toBe(session.vmId);
});

test('only runtime hosts may ask for it', async () => {
  await silence(31, worker);
  expect(await recover(worker)).toMatchObject({ status: 401, code: 'component_unauthorized' });
  expect(await recover(runtime, '00000000-0000-7000-8000-000000000000')).toMatchObject({
    status: 401,
  });
  expect(await record()).toMatchObject({ vm_id: session.vmId });
});
