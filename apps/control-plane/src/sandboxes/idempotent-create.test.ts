import { setTimeout } from 'node:timers/promises';
import { type HeartbeatResponse, ServiceError } from '@svc/contract';
import type { WorkerDouble } from '@svc/worker-double';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Answer, Harness, sessionRequest } from '../../test/harness.ts';
import type { ControlPlane } from '../index.ts';

let harness: Harness;
let sql: pg.Pool;
let second: ControlPlane;
let key: string;
let worker: WorkerDouble;
let keys = 0;

beforeAll(async () => {
  harness = await Harness.start();
  sql = new pg.Pool({ connectionString: harness.postgres.url, max: 4 });
  second = await harness.startAnother();
  key = (await harness.signUp()).key;
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(async () => {
  await sql?.end();
  await second?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
  keys += 1;
});

const liveInLedger = async () =>
  (
    await sql.query<{ vm_id: string; session_id: string | null }>(
      "select vm_id, session_id from sandboxes where state <> 'destroyed'",
    )
  ).rows;
const liveOnWorker = () =>
  [...worker.sandboxes.values()].filter(({ state }) => state !== 'destroyed');
const expireLock = () =>
  sql.query(
    `update idempotency_keys set locked_until = now() - interval '1 second' where key = $1`,
    [`k${keys}`],
  );

/** The answer of a request that may take the key over at any moment, as if its holder had stopped to renew the lock. */
async function takingOver(request: () => Promise<Answer>): Promise<Answer> {
  let answered = false;
  const answer = request();
  const note = () => {
    answered = true;
  };
  void answer.then(note, note);
  while (!answered) {
    await expireLock();
    await setTimeout(20);
  }
  return answer;
}

/** Stalls the first creation on the worker until the returned function is called. */
function stallFirst(work: WorkerDouble['beforeCreated'] = async () => undefined): () => void {
  const stalled = Promise.withResolvers<void>();
  let count = 0;
  worker.beforeCreated = async (request, gone) => {
    count += 1;
    if (count > 1) return;
    await stalled.promise;
    await work(request, gone);
  };
  return stalled.resolve;
}

/** Lets every change of a sandbox wait until the returned function is called. */
async function blockSandboxes(): Promise<() => Promise<void>> {
  const blocker = new pg.Client({ connectionString: harness.postgres.url });
  await blocker.connect();
  onTestFinished(() => blocker.end());
  await blocker.query('begin; lock table sandboxes in share mode');
  return () => blocker.end();
}

/** The number of statements that wait to change sandboxes. */
async function blocked(): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    `select count(*)::int as count from pg_locks join pg_database on pg_database.oid = database
     where datname = current_database() and not granted and relation = 'sandboxes'::regclass`,
  );
  return rows[0]?.count ?? 0;
}

/** Makes the database refuse to store answers until the returned function is called. */
async function refuseAnswers(): Promise<() => Promise<unknown>> {
  await sql.query(`
    create function refuse_answer() returns trigger language plpgsql as
      $$ begin raise exception 'injected'; end $$;
    create trigger refuse_answer before update on idempotency_keys for each row
      when (new.response is not null) execute function refuse_answer();`);
  return () => sql.query('drop function refuse_answer cascade');
}

describe.each([
  {
    resource: 'sandbox',
    path: '/v1/sandboxes',
    json: { template: 'standard' },
    idIn: 'vm_id',
    lost: ['sandboxes'],
  },
  {
    resource: 'session',
    path: '/v1/sessions',
    json: sessionRequest(),
    idIn: 'chat_session_id',
    lost: ['sessions, sandboxes', 'sandboxes'],
  },
])('a $resource with an idempotency key', ({ resource, path, json, idIn, lost }) => {
  const create = (plane: ControlPlane) =>
    harness.call('POST', path, { key, json, plane, headers: { 'idempotency-key': `k${keys}` } });
  const idOf = (answer: Answer) => String(answer.body[idIn]);

  /** Expects that the resource of this answer is the only one, and that the key answers with it. */
  async function expectOnly(answer: Answer): Promise<void> {
    expect(answer.status, answer.text).toBe(201);
    const rows = await liveInLedger();
    expect(rows.map((row) => row[resource === 'session' ? 'session_id' : 'vm_id'])).toEqual([
      idOf(answer),
    ]);
    // The control plane destroys a VM that is left over when the worker reports it.
    const settled = await worker.heartbeat(harness.plane.url);
    const { destroy } = (await settled.json()) as HeartbeatResponse;
    const left = destroy.map(({ vm_id }) => vm_id);
    const kept = liveOnWorker().filter(({ vm_id }) => !left.includes(vm_id));
    expect(kept.map(({ vm_id }) => vm_id)).toEqual([rows[0]?.vm_id]);
    if (resource === 'session') {
      const list = await harness.call('GET', '/v1/sessions', { key });
      expect(list.body.sessions).toMatchObject([{ chat_session_id: idOf(answer) }]);
    }
    for (const plane of [harness.plane, second]) {
      expect(idOf(await create(plane))).toBe(idOf(answer));
    }
  }

  test('is not created by a holder that is slow on the worker and lost its key', async () => {
    const goOn = stallFirst();
    const slow = create(harness.plane);
    await expect.poll(() => worker.placed.length).toBe(1);
    const retry = await takingOver(() => create(second));
    goOn();
    expect(await slow).toMatchObject({ status: 409, body: { code: 'idempotency_in_progress' } });
    await expectOnly(retry);
  });

  test('is not created by a holder that lost its key before it had inserted a sandbox', async () => {
    const unblock = await blockSandboxes();
    const slow = create(harness.plane);
    await expect.poll(blocked).toBe(1);
    const retrying = takingOver(() => create(second));
    await expect.poll(blocked).toBe(2);
    await unblock();
    const [first, retry] = await Promise.all([slow, retrying]);
    expect(first).toMatchObject({ status: 409, body: { code: 'idempotency_in_progress' } });
    await expectOnly(retry);
  });

  test('that has started survives the failure of a holder that lost its key', async () => {
    const goOn = stallFirst(async () => {
      throw new ServiceError('no_capacity');
    });
    const slow = create(harness.plane);
    await expect.poll(() => worker.placed.length).toBe(1);
    const [placed] = worker.placed;
    if (placed === undefined) throw new Error('nothing was placed');
    await worker.event(harness.plane.url, worker.add(placed));
    const retry = await takingOver(() => create(second));
    expect(retry.status).toBe(201);
    goOn();
    expect(idOf(await slow)).toBe(idOf(retry));
    expect(worker.placed).toHaveLength(1);
    await expectOnly(retry);
  });

  test('that has started is the answer, although the call to the worker failed', async () => {
    const goOn = stallFirst(async () => {
      throw new ServiceError('no_capacity');
    });
    const slow = create(harness.plane);
    await expect.poll(() => worker.placed.length).toBe(1);
    const [placed] = worker.placed;
    if (placed === undefined) throw new Error('nothing was placed');
    await worker.event(harness.plane.url, worker.add(placed));
    goOn();
    await expectOnly(await slow);
  });

  test('keeps its key when the answer cannot be stored', async () => {
    const restore = await refuseAnswers();
    const first = await create(harness.plane).finally(restore);
    const retry = await takingOver(() => create(second));
    expect(worker.placed).toHaveLength(1);
    await expectOnly(retry);
    expect(first.text).toBe(retry.text);
  });

  test.each([
    ['paused', () => 'pause'],
    ['ended', () => undefined],
  ])('that is %s is still the answer of a retry', async (_state, action) => {
    const restore = await refuseAnswers();
    const first = await create(harness.plane).finally(restore);
    const [live] = await liveInLedger();
    const at = `/v1/sandboxes/${live?.vm_id}`;
    const verb = action();
    if (verb === undefined) await harness.call('DELETE', at, { key });
    else await harness.call('POST', `${at}/${verb}`, { key });
    const retry = await takingOver(() => create(second));
    expect(retry.text).toBe(first.text);
    expect(worker.placed).toHaveLength(1);
  });

  test('is created anew when the control plane died before it had started', async () => {
    const first = await create(harness.plane);
    await sql.query(
      `update idempotency_keys set response = null where key = 'k${keys}';
       update sandboxes set state = 'creating', running_at = null, host_port = null`,
    );
    const retry = await takingOver(() => create(second));
    expect(idOf(retry)).not.toBe(idOf(first));
    await expectOnly(retry);
  });

  test.each(lost)(
    'is created when the control plane died before it had inserted into %s',
    async (tables) => {
      await create(harness.plane);
      await sql.query(
        `update idempotency_keys set response = null where key = 'k${keys}';
       truncate ${tables} cascade; update tenants set active_sandboxes = 0`,
      );
      worker.sandboxes.clear();
      await expectOnly(await takingOver(() => create(second)));
    },
  );

  test('whose deletion ended its start frees the key', async () => {
    const goOn = stallFirst();
    const slow = create(harness.plane);
    await expect.poll(() => worker.placed.length).toBe(1);
    worker.beforeDestroyed = async () => {
      throw new ServiceError('sandbox_not_found');
    };
    const [live] = await liveInLedger();
    await harness.call('DELETE', `/v1/sandboxes/${live?.vm_id}`, { key });
    goOn();
    expect(await slow).toMatchObject({ status: 409, body: { code: 'sandbox_deleted' } });
    expect((await create(second)).status).toBe(201);
    expect(await liveInLedger()).toHaveLength(1);
  });
});
