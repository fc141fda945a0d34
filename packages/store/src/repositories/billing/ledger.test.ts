import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../../test/test-postgres.ts';
import { openStore, type Store } from '../../store.ts';

let postgres: TestPostgres;
let store: Store;
let sql: pg.Client;
let tenants = 0;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({
    url: postgres.url,
    placement: { unreachableMs: 600_000, sandboxesPerTenant: 10 },
  });
  sql = new pg.Client({ connectionString: postgres.url });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

async function newTenant(grantCents = 0): Promise<string> {
  tenants += 1;
  const id = `usr_${tenants}`;
  await store.tenants.findOrCreate(`${id}@example.com`, id, grantCents);
  return id;
}

function purchase(tenantId: string, reference: string, amount = 1000) {
  return store.billing.add({ tenantId, amount, kind: 'purchase', reference, description: 'x' });
}

test('a new tenant gets its credit once, however often and concurrently it signs up', async () => {
  const email = 'ada@example.com';
  const rows = await Promise.all(
    Array.from({ length: 8 }, (_, n) => store.tenants.findOrCreate(email, `usr_ada${n}`, 500)),
  );
  const tenantId = rows[0]?.tenant_id ?? '';
  expect(await store.billing.balance(tenantId)).toBe(500);
  expect(await store.billing.list(tenantId, { limit: 10, offset: 0 })).toEqual([
    {
      id: expect.stringMatching(/^txn_[0-9a-f]{12}7[0-9a-f]{19}$/),
      amount: 500,
      description: 'Credit for new accounts',
      createdAt: expect.any(Date),
    },
  ]);
});

test('tenants without an account get theirs once', async () => {
  await sql.query(`insert into tenants (tenant_id, email) values ('usr_old', 'old@example.com')`);
  expect(await store.billing.balance('usr_old')).toBe(0);
  const opened = await Promise.all(
    Array.from({ length: 6 }, () => store.billing.openAccounts(500, 100)),
  );
  expect(opened.reduce((sum, count) => sum + count)).toBe(1);
  expect(await store.billing.balance('usr_old')).toBe(500);
  expect(await store.billing.openAccounts(500, 100)).toBe(0);
});

test('one entry exists for a reference, and the balance counts it once', async () => {
  const tenantId = await newTenant(500);
  const added = await Promise.all(Array.from({ length: 10 }, () => purchase(tenantId, 'p1')));
  expect(added.filter(Boolean)).toHaveLength(1);
  expect(await store.billing.balance(tenantId)).toBe(1500);
  expect(await purchase(tenantId, 'p2', 1)).toBe(true);
  expect(await store.billing.balance(tenantId)).toBe(1501);
});

test('pages of entries are newest first and belong to one tenant', async () => {
  const [tenantId, other] = [await newTenant(), await newTenant(7)];
  for (const n of [1, 2, 3, 4]) await purchase(tenantId, `${tenantId} ${n}`, n);
  const amounts = async (limit: number, offset: number) =>
    (await store.billing.list(tenantId, { limit, offset })).map(({ amount }) => amount);
  expect(await amounts(3, 0)).toEqual([4, 3, 2]);
  expect(await amounts(3, 3)).toEqual([1]);
  expect(await amounts(3, 4)).toEqual([]);
  expect(await store.billing.balance(other)).toBe(7);
});

test.each([
  ['update ledger_entries set amount_cents = 1'],
  ["update ledger_entries set description = 'y'"],
  ['delete from ledger_entries'],
  ['truncate ledger_entries'],
  ['truncate tenants cascade'],
])('the ledger refuses: %s', async (statement) => {
  await purchase(await newTenant(), `for ${statement}`);
  await expect(sql.query(statement)).rejects.toThrow('never changed or removed');
});

test.each([
  ['usage', 5],
  ['grant', -5],
  ['purchase', 0],
] as const)('an entry of kind %s with %d cents is refused', async (kind, amount) => {
  const tenantId = await newTenant();
  const entry = { tenantId, kind, amount, reference: 'bad', description: 'x' };
  await expect(store.billing.add(entry)).rejects.toThrow('check constraint');
  expect(await store.billing.balance(tenantId)).toBe(0);
});

test('settings of top-ups are off until the tenant sets them', async () => {
  const tenantId = await newTenant();
  expect(await store.billing.autoTopup(tenantId)).toEqual({
    enabled: false,
    threshold: 0,
    amount: 0,
  });
  const settings = { enabled: true, threshold: 200, amount: 2000 };
  await store.billing.setAutoTopup(tenantId, settings);
  expect(await store.billing.autoTopup(tenantId)).toEqual(settings);
});
