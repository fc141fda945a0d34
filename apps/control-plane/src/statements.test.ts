import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { Harness } from '../test/harness.ts';

/** Of requests that nothing else accompanies. The service's own work may add statements to some of them. */
const RUNS = 3;

let harness: Harness;
let key: string;

beforeAll(async () => {
  harness = await Harness.start({
    SVC_LIMIT_SANDBOXES_PER_TENANT: '1000',
    SVC_LIMIT_REQUESTS_PER_TENANT: '1000',
  });
  key = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(() => harness.reset());
afterEach(() => vi.restoreAllMocks());

/** The fewest statements that `request` took, with what else has to be recorded about the key: that it was used. */
async function statementsOf(
  request: () => Promise<unknown>,
  prepare: () => Promise<unknown> = async () => undefined,
): Promise<number> {
  const counts: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    await prepare();
    await harness.sql.query('update api_keys set last_used_at = null');
    const query = vi.spyOn(pg.Client.prototype, 'query');
    await request();
    counts.push(query.mock.calls.length);
    query.mockRestore();
  }
  return Math.min(...counts);
}

const create = (headers: Record<string, string> = {}) =>
  harness.call('POST', '/v1/sandboxes', { key, json: { template: 'standard' }, headers });

test('a get takes at most two statements', async () => {
  await harness.addWorker('w1');
  const vmId = await harness.create(key);
  const count = await statementsOf(async () => {
    const answer = await harness.call('GET', `/v1/sandboxes/${vmId}`, { key });
    expect(answer.status).toBe(200);
  });
  expect(count).toBeLessThanOrEqual(2);
});

test('a create takes at most four statements, and six with an idempotency key', async () => {
  await harness.addWorker('w1', (worker) => {
    worker.memoryMib = 1_000_000;
  });
  const plain = await statementsOf(async () => expect((await create()).status).toBe(201));
  expect(plain).toBeLessThanOrEqual(4);
  const keyed = await statementsOf(async () =>
    expect((await create({ 'idempotency-key': randomUUID() })).status).toBe(201),
  );
  expect(keyed).toBeLessThanOrEqual(6);
});

test('a list takes at most three statements, however many workers there are', async () => {
  for (const id of ['w1', 'w2', 'w3', 'w4']) await harness.addWorker(id);
  for (let made = 0; made < 8; made += 1) await harness.create(key);
  const count = await statementsOf(async () =>
    expect((await harness.call('GET', '/v1/sandboxes', { key })).status).toBe(200),
  );
  expect(count).toBeLessThanOrEqual(3);
});

test.each([0, 1, 200])('a heartbeat about %i sandboxes takes at most three', async (sandboxes) => {
  const worker = await harness.addWorker('w1', (one) => {
    one.memoryMib = 1_000_000;
  });
  const made = Array.from({ length: sandboxes }, () => harness.create(key));
  const ids = await Promise.all(made);
  let cpuSeconds = 0;
  const heartbeat = async () => {
    cpuSeconds += 1;
    for (const id of ids) worker.change(id, { cpu_seconds: cpuSeconds });
    expect((await worker.heartbeat(harness.plane.url)).status).toBe(200);
  };
  expect(await statementsOf(heartbeat)).toBeLessThanOrEqual(3);
  if (sandboxes === 0) return;
  const { rows } = await harness.sql.query('select distinct cpu_seconds from sandboxes');
  expect(rows).toEqual([{ cpu_seconds: cpuSeconds }]);
});

test('a short report takes at most two, and one more for sandboxes that have changed', async () => {
  const worker = await harness.addWorker('w1');
  const ids = [await harness.create(key), await harness.create(key)];
  const report = async (sandboxes: readonly object[]) => {
    const { status } = await worker.renewLease(harness.plane.url, 'w1', { sandboxes });
    expect(status).toBe(200);
  };
  expect(await statementsOf(() => report([]))).toBeLessThanOrEqual(2);
  let connections = 0;
  const changed = () => {
    connections += 1;
    for (const id of ids) worker.change(id, { active_connections: connections });
    return report([...worker.sandboxes.values()]);
  };
  expect(await statementsOf(changed)).toBeLessThanOrEqual(3);
});

test('a heartbeat about the ends of 20 sandboxes and the life of 20 takes at most three', async () => {
  const worker = await harness.addWorker('w1', (one) => {
    one.memoryMib = 1_000_000;
  });
  const count = await statementsOf(
    async () => {
      expect((await worker.heartbeat(harness.plane.url)).status).toBe(200);
    },
    async () => {
      await harness.sql.query('truncate sandboxes cascade');
      worker.sandboxes.clear();
      const ids = await Promise.all(Array.from({ length: 40 }, () => harness.create(key)));
      for (const id of ids.slice(20)) worker.end(id, 'max_lifetime');
    },
  );
  expect(count).toBeLessThanOrEqual(3);
  const { rows } = await harness.sql.query(
    'select state, count(*)::int from sandboxes group by state order by state',
  );
  expect(rows).toEqual([
    { state: 'destroyed', count: 20 },
    { state: 'running', count: 20 },
  ]);
});
