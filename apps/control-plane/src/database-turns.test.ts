import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Answer, Harness } from '../test/harness.ts';

const MOST = 40;
let harness: Harness;
let watcher: pg.Client;

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_REQUESTS_PER_TENANT: String(MOST) });
  watcher = new pg.Client({ connectionString: harness.postgres.url });
  await watcher.connect();
});
afterAll(async () => {
  await watcher?.end();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(() => harness.reset());

/** Statements that wait for a lock. */
async function waitingStatements(): Promise<number> {
  const { rows } = await watcher.query<{ count: number }>(
    `select count(*)::int from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.count ?? 0;
}

test('a tenant whose statements all wait holds up nobody else, and is told to come back', async () => {
  const [greedy, neighbour] = [await harness.signUp(), await harness.signUp()];
  const worker = await harness.addWorker('w1');
  const vmId = await harness.create(greedy.key);
  const answered: Answer[] = [];
  await harness.sql.query('begin');
  await harness.sql.query('select from tenants where tenant_id = $1 for update', [greedy.tenantId]);
  const flood = Array.from({ length: MOST + 20 }, async () => {
    const call = { key: greedy.token, json: {} };
    answered.push(await harness.call('POST', '/v1/api-keys', call));
  });
  try {
    await expect.poll(waitingStatements).toBeGreaterThanOrEqual(8);
    const made = await harness.call('POST', '/v1/api-keys', { key: neighbour.token, json: {} });
    expect(made.status).toBe(201);
    expect((await harness.call('GET', '/v1/tenants/me', { key: neighbour.key })).status).toBe(200);
    const id = await harness.create(neighbour.key);
    expect((await worker.register(harness.plane.url)).status).toBe(200);
    expect(
      (await harness.call('DELETE', `/v1/sandboxes/${id}`, { key: neighbour.key })).status,
    ).toBe(200);
    await harness.signUp();
    await expect.poll(() => answered.length).toBe(20);
    for (const { status, body, headers } of answered) {
      expect({ status, code: body.code }).toEqual({ status: 429, code: 'too_many_requests' });
      expect(headers.get('retry-after')).toBe('1');
    }
    // A deletion has a count of its own.
    const path = `/v1/sandboxes/${vmId}`;
    const gone = harness.call('DELETE', path, { key: greedy.key });
    await harness.sql.query('rollback');
    expect((await gone).status).toBe(200);
  } finally {
    await harness.sql.query('rollback');
    await Promise.all(flood);
  }
  expect(answered.filter(({ status }) => status === 429)).toHaveLength(20);
  const next = await harness.call('GET', '/v1/api-keys', { key: greedy.token });
  expect(next.status).toBe(200);
});
