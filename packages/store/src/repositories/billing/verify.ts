import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Differences that one check lists. */
const MAX_DIFFERENCES = 20;

/** Something that the ledger says otherwise than its sources. */
export interface BillingDifference {
  readonly subject: string;
  readonly found: string;
  readonly expected: string;
}

/** The result of one check. */
export interface BillingCheck {
  /** What holds if there are no differences. */
  readonly claim: string;
  /** At most 20. */
  readonly differences: readonly BillingDifference[];
}

/** Each query returns the differences as `subject`, `found`, `expected`. */
const CHECKS: Readonly<Record<string, RawBuilder<BillingDifference>>> = {
  'every balance is the sum of its entries': sql`
    select coalesce(a.tenant_id, e.tenant_id) as subject, coalesce(balance_cents, 0)::text as found,
      coalesce(total, 0)::text as expected
    from billing_accounts a full join
      (select tenant_id, sum(amount_cents) as total from ledger_entries group by tenant_id) e
      on e.tenant_id = a.tenant_id
    where coalesce(balance_cents, 0) <> coalesce(total, 0)`,
  'every account exists once its tenant has money': sql`
    select distinct tenant_id as subject, 'no account' as found, 'an account' as expected
    from ledger_entries where not exists (select from billing_accounts
      where billing_accounts.tenant_id = ledger_entries.tenant_id)`,
  'at most one entry exists for each reference': sql`
    select kind || ' ' || reference as subject, count(*)::text as found, '1' as expected
    from ledger_entries group by kind, reference having count(*) > 1`,
  'every grant belongs to its account': sql`
    select entry_id as subject, reference as found, tenant_id as expected
    from ledger_entries where kind = 'grant' and reference <> tenant_id`,
  'the costs of posted records are the usage entries and the carry': sql`
    select a.tenant_id as subject, (coalesce(entered, 0) * 10000 + carry_microusd)::text as found,
      coalesce(cost, 0)::text as expected
    from billing_accounts a
    left join (select tenant_id, -sum(amount_cents) as entered from ledger_entries
      where kind = 'usage' group by tenant_id) e on e.tenant_id = a.tenant_id
    left join (select tenant_id, sum(cost_microusd) as cost from usage_records
      where posted_entry is not null group by tenant_id) u on u.tenant_id = a.tenant_id
    where coalesce(entered, 0) * 10000 + carry_microusd <> coalesce(cost, 0)`,
  'every carry is less than a cent': sql`
    select tenant_id as subject, carry_microusd::text as found, '0 to 9999' as expected
    from billing_accounts where carry_microusd not between 0 and 9999`,
  'every record is posted for its own account': sql`
    select vm_id || ' ' || u.seq as subject, e.tenant_id as found, u.tenant_id as expected
    from usage_records u join ledger_entries e on e.entry_id = posted_entry
    where e.tenant_id <> u.tenant_id or e.kind <> 'usage'`,
  'the records of a sandbox are what it was metered': sql`
    select m.vm_id || ' generation ' || m.generation as subject,
      ${counters(sql`m`)} as found, coalesce(r.total, '0 0 0 0 0 0') as expected
    from usage_meters m left join (
      select vm_id, generation, ${sums()} as total from usage_records group by vm_id, generation
    ) r on r.vm_id = m.vm_id and r.generation = m.generation
    where ${counters(sql`m`)} <> coalesce(r.total, '0 0 0 0 0 0')`,
  'the records of a day are its sums': sql`
    select coalesce(d.tenant_id, r.tenant_id) || ' ' || coalesce(d.day, r.day) as subject,
      coalesce(${counters(sql`d`)}, '0 0 0 0 0 0') as found,
      coalesce(r.total, '0 0 0 0 0 0') as expected
    from usage_days d full join (
      select tenant_id, (used_at at time zone 'UTC')::date as day, ${sums()} as total
      from usage_records group by 1, 2
    ) r on r.tenant_id = d.tenant_id and r.day = d.day
    where coalesce(${counters(sql`d`)}, '0 0 0 0 0 0') <> coalesce(r.total, '0 0 0 0 0 0')`,
  'every paid checkout is one purchase of its amount': sql`
    select coalesce(checkout_id, reference) as subject,
      coalesce(e.tenant_id || ' ' || e.amount_cents, 'no entry') as found,
      coalesce(c.tenant_id || ' ' || c.amount_cents, 'no paid checkout') as expected
    from (select * from checkouts where paid_at is not null) c
    full join (select * from ledger_entries where kind = 'purchase') e on reference = checkout_id
    where (e.tenant_id, e.amount_cents) is distinct from (c.tenant_id, c.amount_cents)`,
  'every paid top-up is one entry of its amount': sql`
    select coalesce(topup_id, reference) as subject,
      coalesce(e.tenant_id || ' ' || e.amount_cents, 'no entry') as found,
      coalesce(t.tenant_id || ' ' || t.amount_cents, 'no paid top-up') as expected
    from (select * from topups where state = 'succeeded') t
    full join (select * from ledger_entries where kind = 'topup') e on reference = topup_id
    where (e.tenant_id, e.amount_cents) is distinct from (t.tenant_id, t.amount_cents)`,
  'every event that reported money has its entry': sql`
    select event_id as subject, 'no entry' as found, p.kind || ' ' || p.reference as expected
    from provider_events p where p.kind is not null and not exists (select from ledger_entries e
      where e.kind = p.kind and e.reference = p.reference)`,
  'the database protects the ledger': sql`
    select name as subject, coalesce(tgenabled::text, 'missing') as found, 'O' as expected
    from unnest(array['ledger_entries_balance', 'ledger_entries_unchanged', 'ledger_entries_kept'])
      as name
    left join pg_trigger on tgname = name and tgrelid = 'ledger_entries'::regclass
    where coalesce(tgenabled::text, 'missing') <> 'O'`,
};

/** The counters of a row as one text. */
function counters(table: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${table}.cpu_ms || ' ' || ${table}.wall_ms || ' ' || ${table}.input_tokens || ' ' ||
    ${table}.output_tokens || ' ' || ${table}.tool_calls || ' ' || ${table}.cost_microusd)`;
}

/** The sums of the counters of a group of records, in the same order. */
function sums(): RawBuilder<string> {
  return sql`(sum(cpu_ms) || ' ' || sum(wall_ms) || ' ' || sum(input_tokens) || ' ' ||
    sum(output_tokens) || ' ' || sum(tool_calls) || ' ' || sum(cost_microusd))`;
}

/**
 * Recomputes everything that billing keeps from its sources, in one snapshot of the database, so that the service can go
 * on meanwhile.
 */
export async function verify(db: Kysely<Schema>): Promise<BillingCheck[]> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (transaction) => {
      const results: BillingCheck[] = [];
      for (const [claim, query] of Object.entries(CHECKS)) {
        const { rows } = await sql<BillingDifference>`
          select subject, found, expected from (${query}) differences
          order by subject limit ${MAX_DIFFERENCES}`.execute(transaction);
        results.push({ claim, differences: rows });
      }
      return results;
    });
}
