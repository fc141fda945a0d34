import { createLogger } from '@svc/service-kit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { BillingUpkeep } from './upkeep.ts';

const TENANTS = 450;

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await startTestLedger();
});
afterAll(() => ledger?.[Symbol.asyncDispose]());

test('a pass posts the usage of every tenant, however many there are', async () => {
  await ledger.sql.query(
    `insert into tenants (tenant_id, email)
     select 'usr_' || n, n || '@example.com' from generate_series(1, ${TENANTS}) n`,
  );
  const upkeep = new BillingUpkeep({
    ledger: ledger.store.billing,
    grantCents: 0,
    topups: undefined,
    enforcer: undefined,
    logger: createLogger({ level: 'silent' }),
  });
  const pass = () => upkeep.pass(new AbortController().signal);
  await pass();
  await ledger.sql.query(
    `insert into usage_records (vm_id, generation, seq, tenant_id, cost_microusd, used_at)
     select 'vm_' || n, 1, 1, 'usr_' || n, 20_000, now() from generate_series(1, ${TENANTS}) n`,
  );
  await pass();
  const { rows } = await ledger.sql.query<{ posted: number }>(
    `select count(*)::int as posted from ledger_entries where kind = 'usage'`,
  );
  expect(rows).toEqual([{ posted: TENANTS }]);
});
