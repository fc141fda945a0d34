import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../../test/test-postgres.ts';
import { openStore, type Store } from '../../store.ts';

let postgres: TestPostgres;
/** The stores of two control planes. */
let stores: [Store, Store];
let sql: pg.Client;
let tenants = 0;
let seq = 0;

beforeAll(async () => {
  postgres = await startTestPostgres();
  const placement = { unreachableMs: 600_000, sandboxesPerTenant: 10 };
  const open = () => openStore({ url: postgres.url, placement });
  stores = [await open(), await open()];
  sql = new pg.Client({ connectionString: postgres.url });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  for (const store of stores ?? []) await store.close();
  await postgres?.[Symbol.asyncDispose]();
});

async function newTenant(): Promise<string> {
  tenants += 1;
  const id = `usr_${tenants}`;
  await stores[0].tenants.findOrCreate(`${id}@example.com`, id, 500);
  return id;
}

/** Adds a usage record for each cost, in micro-dollars. */
async function use(tenantId: string, ...costs: (number | string)[]): Promise<void> {
  for (const cost of costs) {
    seq += 1;
    await sql.query(
      `insert into usage_records (vm_id, generation, seq, tenant_id, cost_microusd, used_at)
       values ('vm_1', 1, $1, $2, $3, now())`,
      [seq, tenantId, cost],
    );
  }
}

async function carryOf(tenantId: string): Promise<number> {
  const { rows } = await sql.query<{ carry_microusd: number }>(
    'select carry_microusd from billing_accounts where tenant_id = $1',
    [tenantId],
  );
  return rows[0]?.carry_microusd ?? -1;
}

const amounts = async (tenantId: string) =>
  (await stores[0].billing.list(tenantId, { limit: 100, offset: 0 })).map(({ amount }) => amount);
const post = (tenantId: string, store = stores[0], limit = 1000) =>
  store.billing.postUsage(tenantId, limit);

test('deducts whole cents in one entry and carries the rest', async () => {
  const tenantId = await newTenant();
  await use(tenantId, 9_999, 9_999, 1);
  expect(await post(tenantId)).toBe(3);
  expect([await amounts(tenantId), await carryOf(tenantId)]).toEqual([[-1, 500], 9_999]);
  await use(tenantId, 1);
  expect(await post(tenantId)).toBe(1);
  expect([await amounts(tenantId), await carryOf(tenantId)]).toEqual([[-1, -1, 500], 0]);
  expect(await stores[0].billing.balance(tenantId)).toBe(498);
  expect(await post(tenantId)).toBe(0);
});

test('writes no entry for less than a cent, and none twice', async () => {
  const tenantId = await newTenant();
  await use(tenantId, 0, 4_000);
  expect(await post(tenantId)).toBe(2);
  expect([await amounts(tenantId), await carryOf(tenantId)]).toEqual([[500], 4_000]);
  expect(await stores[0].billing.findUnposted(10)).toEqual([]);
});

test('posts each record once, however many control planes post at the same time', async () => {
  const tenantId = await newTenant();
  await use(tenantId, ...Array.from({ length: 60 }, () => 12_345));
  for (let round = 0; round < 8; round += 1) {
    await Promise.all(Array.from({ length: 6 }, (_, n) => post(tenantId, stores[n % 2], 10)));
  }
  const total = 60 * 12_345;
  expect(await stores[0].billing.findUnposted(10)).toEqual([]);
  expect(await stores[0].billing.balance(tenantId)).toBe(500 - Math.floor(total / 10_000));
  expect(await carryOf(tenantId)).toBe(total % 10_000);
});

test('counts costs beyond the range of floating-point numbers exactly', async () => {
  const tenantId = await newTenant();
  await use(tenantId, '90071992547409930001');
  await post(tenantId);
  const { rows } = await sql.query(
    "select amount_cents from ledger_entries where tenant_id = $1 and kind = 'usage'",
    [tenantId],
  );
  expect(rows).toEqual([{ amount_cents: '-9007199254740993' }]);
  expect(await carryOf(tenantId)).toBe(1);
});

test('leaves other tenants alone', async () => {
  const [one, other] = [await newTenant(), await newTenant()];
  await use(one, 20_000);
  await use(other, 30_000);
  await post(one);
  expect(await amounts(one)).toEqual([-2, 500]);
  expect(await amounts(other)).toEqual([500]);
  expect(await stores[0].billing.findUnposted(10)).toEqual([other]);
  await post(other);
  expect(await amounts(other)).toEqual([-3, 500]);
});
