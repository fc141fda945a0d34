import { createLogger } from '@svc/service-kit';
import { settledWithin, untilAborted } from '@svc/service-kit/concurrency';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { BillingUpkeep, type BillingUpkeepParts } from './upkeep.ts';

const TENANTS = 450;

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await startTestLedger();
});
afterAll(() => ledger?.[Symbol.asyncDispose]());

const never = new AbortController().signal;

function upkeepOf(parts: Partial<BillingUpkeepParts> = {}): BillingUpkeep {
  return new BillingUpkeep({
    ledger: ledger.store.billing,
    grantCents: 0,
    topups: undefined,
    enforcer: undefined,
    logger: createLogger({ level: 'silent' }),
    ...parts,
  });
}

/** A step whose runs never end before their signal aborts, as while a worker or Stripe does not answer. */
function stuckStep() {
  const step = {
    runs: 0,
    run(signal: AbortSignal): Promise<void> {
      step.runs += 1;
      return untilAborted(Promise.withResolvers<void>().promise, signal);
    },
  };
  return step;
}

test('a pass posts the usage of every tenant, however many there are', async () => {
  await ledger.sql.query(
    `insert into tenants (tenant_id, email)
     select 'usr_' || n, n || '@example.com' from generate_series(1, ${TENANTS}) n`,
  );
  const upkeep = upkeepOf();
  const pass = () => upkeep.pass(never);
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

test.each(['topups', 'enforcer'])(
  'usage is posted while the %s wait for an answer',
  async (name) => {
    const step = stuckStep();
    const upkeep = upkeepOf({ [name]: step });
    upkeep.start();
    await expect.poll(() => step.runs).toBe(1);
    await ledger.sql.query(
      `insert into usage_records (vm_id, generation, seq, tenant_id, cost_microusd, used_at)
     values ($1, 1, 1, 't', 20_000, now())`,
      [`vm_${name}`],
    );
    expect(await settledWithin(upkeep.pass(never), 5_000)).toBe(true);
    expect(await ledger.store.billing.findUnposted(1)).toEqual([]);
    // One run of a step at a time.
    expect(step.runs).toBe(1);
    await upkeep.close();
  },
);

test('accounts are topped up before credit is enforced', async () => {
  const topup = Promise.withResolvers<void>();
  const enforcer = { run: vi.fn(async () => undefined) };
  const upkeep = upkeepOf({ topups: { run: () => topup.promise }, enforcer });
  await upkeep.pass(never);
  await upkeep.pass(never);
  expect(enforcer.run).not.toHaveBeenCalled();
  topup.resolve();
  await expect.poll(() => enforcer.run.mock.calls.length).toBeGreaterThan(0);
  await upkeep.close();
});

test('the end waits for a charge in progress, but not for ever', async () => {
  const run = vi.fn(() => Promise.withResolvers<void>().promise);
  const upkeep = upkeepOf({ topups: { run } });
  upkeep.start();
  await expect.poll(() => run.mock.calls.length).toBe(1);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const closed = vi.fn();
    const closing = upkeep.close().then(closed);
    await vi.advanceTimersByTimeAsync(24_000);
    expect(closed).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(closed).toHaveBeenCalledOnce();
    await closing;
  } finally {
    vi.useRealTimers();
  }
});
