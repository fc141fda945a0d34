import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../../test/test-postgres.ts';
import { openStore, type Store } from '../../store.ts';
import { verifyBilling } from '../../verify-billing.ts';

let postgres: TestPostgres;
let store: Store;
let sql: pg.Client;

beforeAll(async () => {
  postgres = await startTestPostgres();
  const placement = { unreachableMs: 600_000, sandboxesPerTenant: 10 };
  store = await openStore({ url: postgres.url, placement });
  sql = new pg.Client({ connectionString: postgres.url });
  await sql.connect();
  await store.tenants.findOrCreate('ada@example.com', 'usr_1', 500);
  await store.tenants.findOrCreate('eve@example.com', 'usr_2', 500);
  await sql.query(`
    insert into usage_records (vm_id, generation, seq, tenant_id, cpu_ms, cost_microusd, used_at)
    select 'vm_1', 1, n, 'usr_1', 7, 12345, '2026-11-22T23:59:59Z' from generate_series(1, 9) n;
    insert into usage_days (tenant_id, day, cpu_ms, cost_microusd)
    values ('usr_1', '2026-11-22', 63, 111105)`);
  await store.billing.postUsage('usr_1', 4);
  await store.billing.postUsage('usr_1', 4);
  const checkout = { checkoutId: 'c1', provider: 'stripe' as const, amount: 700 };
  await store.billing.beginCheckout({ ...checkout, tenantId: 'usr_1', lifetimeSeconds: 60 });
  await store.billing.applyEvent({
    eventId: 'evt_1',
    type: 'checkout.session.completed',
    facts: [{ kind: 'purchase_paid', checkoutId: 'c1', amount: 700 }],
  });
  await store.billing.noteCustomer('usr_1', 'cus_1');
  await store.billing.applyEvent({
    eventId: 'evt_2',
    type: 'payment_intent.succeeded',
    facts: [
      { kind: 'method_saved', customer: 'cus_1', paymentMethod: 'pm_1', savedAt: new Date() },
    ],
  });
  await store.billing.setAutoTopup('usr_1', { enabled: true, threshold: 5000, amount: 900 });
  await store.billing.beginTopups({ intervalSeconds: 600, minCents: 500 });
  const [topup] = await store.billing.claimTopups(1, 60);
  await store.billing.completeTopup({ topupId: topup?.topup_id ?? '', amount: 900 });
});
afterAll(async () => {
  await sql?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

/** The checks that fail, with their differences. */
async function failures() {
  const checks = await verifyBilling(postgres.url);
  return Object.fromEntries(
    checks
      .filter(({ differences }) => differences.length > 0)
      .map(({ claim, differences }) => [claim, differences]),
  );
}

test('everything adds up, with usage that is not posted yet', async () => {
  expect(await failures()).toEqual({});
  expect(await store.billing.balance('usr_1')).toBe(500 - 9 + 700 + 900);
});

test.each([
  [
    'a changed balance',
    "update billing_accounts set balance_cents = balance_cents + 1 where tenant_id = 'usr_2'",
    'every balance is the sum of its entries',
    { subject: 'usr_2', found: '501', expected: '500' },
  ],
  [
    'a changed entry',
    "update ledger_entries set amount_cents = 501 where tenant_id = 'usr_2'",
    'every balance is the sum of its entries',
    { subject: 'usr_2', found: '500', expected: '501' },
  ],
  [
    'a removed entry',
    "delete from ledger_entries where kind = 'purchase'",
    'every paid checkout is one purchase of its amount',
    { subject: 'c1', found: 'no entry', expected: 'usr_1 700' },
  ],
  [
    'an invented purchase',
    `insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
     values ('usr_2', 5, 'purchase', 'none', '')`,
    'every paid checkout is one purchase of its amount',
    { subject: 'none', found: 'usr_2 5', expected: 'no paid checkout' },
  ],
  [
    'an entry that moved to another account',
    "update ledger_entries set tenant_id = 'usr_2' where kind = 'topup'",
    'every paid top-up is one entry of its amount',
    { found: 'usr_2 900', expected: 'usr_1 900' },
  ],
  [
    'a lost posting',
    "update usage_records set posted_entry = null where seq = 1 and tenant_id = 'usr_1'",
    'the costs of posted records are the usage entries and the carry',
    { subject: 'usr_1', found: '98760', expected: '86415' },
  ],
  [
    'a changed cost',
    'update usage_records set cost_microusd = 1 where seq = 9',
    'the records of a day are its sums',
    { subject: 'usr_1 2026-11-22', found: '63 0 0 0 0 111105', expected: '63 0 0 0 0 98761' },
  ],
  [
    'a lost record',
    'delete from usage_records where seq = 9',
    'the records of a day are its sums',
    { expected: '56 0 0 0 0 98760' },
  ],
  [
    'a changed carry',
    'update billing_accounts set carry_microusd = carry_microusd + 1 where carry_microusd > 0',
    'the costs of posted records are the usage entries and the carry',
    { subject: 'usr_1', found: '98761', expected: '98760' },
  ],
  [
    'a carry out of range',
    `alter table billing_accounts drop constraint billing_accounts_carry_microusd_check;
     update billing_accounts set carry_microusd = 10000 where tenant_id = 'usr_2'`,
    'every carry is less than a cent',
    { subject: 'usr_2', found: '10000' },
  ],
  [
    'a usage entry without records',
    `insert into ledger_entries (entry_id, tenant_id, amount_cents, kind, reference, description)
     values ('txn_x', 'usr_2', -1, 'usage', 'txn_x', '')`,
    'the costs of posted records are the usage entries and the carry',
    { subject: 'usr_2', found: '10000', expected: '0' },
  ],
  [
    'a posting for another account',
    "update usage_records set tenant_id = 'usr_2' where seq = 1",
    'every record is posted for its own account',
    { subject: 'vm_1 1', found: 'usr_1', expected: 'usr_2' },
  ],
  [
    'a grant of another account',
    "update ledger_entries set reference = 'usr_9' where kind = 'grant' and tenant_id = 'usr_2'",
    'every grant belongs to its account',
    { found: 'usr_9', expected: 'usr_2' },
  ],
  [
    'a doubled entry',
    `alter table ledger_entries drop constraint ledger_entries_kind_reference_key;
     insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
     select tenant_id, amount_cents, kind, reference, '' from ledger_entries where kind = 'topup'`,
    'at most one entry exists for each reference',
    { found: '2', expected: '1' },
  ],
  [
    'an event without its entry',
    "update provider_events set reference = 'gone' where event_id = 'evt_1'",
    'every event that reported money has its entry',
    { subject: 'evt_1', expected: 'purchase gone' },
  ],
  [
    'a record that its meter has counted and that is lost',
    `insert into usage_meters (vm_id, generation, tenant_id, cpu_ms, cost_microusd)
     values ('vm_1', 1, 'usr_1', 70, 123450)`,
    'the records of a sandbox are what it was metered',
    { subject: 'vm_1 generation 1', found: '70 0 0 0 0 123450', expected: '63 0 0 0 0 111105' },
  ],
  [
    'a lost account',
    "delete from billing_accounts where tenant_id = 'usr_2'",
    'every account exists once its tenant has money',
    { subject: 'usr_2' },
  ],
  [
    'a disabled protection',
    'alter table ledger_entries disable trigger ledger_entries_unchanged',
    'the database protects the ledger',
    { subject: 'ledger_entries_unchanged', found: 'D', expected: 'O' },
  ],
])('finds %s', async (_what, corruption, claim, difference) => {
  // Triggers would refuse most of this. The backup restores every table afterwards.
  await sql.query('create schema backup');
  const tables = [
    'ledger_entries',
    'billing_accounts',
    'usage_records',
    'usage_meters',
    'provider_events',
  ];
  for (const table of tables) await sql.query(`create table backup.${table} as table ${table}`);
  try {
    await sql.query(`set session_replication_role = replica; ${corruption}`);
    expect(await failures()).toMatchObject({ [claim]: [difference] });
  } finally {
    await restore(tables);
  }
  expect(await failures()).toEqual({});
});

/** Undoes a corruption. */
async function restore(tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    await sql.query(`delete from ${table}`);
    const identity = table === 'ledger_entries' ? 'overriding system value' : '';
    await sql.query(`insert into ${table} ${identity} select * from backup.${table}`);
  }
  await sql.query('set session_replication_role = origin');
  await sql.query('drop schema backup cascade');
  await sql.query('alter table ledger_entries enable trigger ledger_entries_unchanged');
}
