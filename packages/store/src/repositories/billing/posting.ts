import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** A cent in micro-dollars, the unit of the costs of usage. */
const MICROUSD_PER_CENT = 10_000;
const DESCRIPTION = 'Usage';

/** Up to `limit` tenants with usage that is not posted, in the order of their ids, which are greater than `after`. */
export async function findUnposted(
  db: Kysely<Schema>,
  limit: number,
  after: string,
): Promise<string[]> {
  const { rows } = await sql<{ tenant_id: string }>`
    select tenant_id from billing_accounts
    where tenant_id > ${after} and exists (select from usage_records
      where usage_records.tenant_id = billing_accounts.tenant_id and posted_entry is null)
    order by tenant_id limit ${limit}`.execute(db);
  return rows.map((row) => row.tenant_id);
}

/**
 * Posts up to `limit` usage records of a tenant: marks them and deducts the whole cents of their cost and of the carry
 * in one entry, all in one transaction; the rest is carried. Returns the number of records; 0 also while another
 * control plane posts for this tenant. Records that cost less than a cent together are marked with an id of which no
 * entry exists.
 */
export async function postUsage(
  db: Kysely<Schema>,
  tenantId: string,
  limit: number,
): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    const locked = await sql`
      select from billing_accounts where tenant_id = ${tenantId} for no key update skip locked`.execute(
      transaction,
    );
    if (locked.rows.length === 0) return 0;
    const { rows } = await sql<{ records: number }>`
      with posting as (select new_transaction_id() as entry_id),
      batch as (
        select vm_id, generation, seq from usage_records
        where tenant_id = ${tenantId} and posted_entry is null limit ${limit}
      ), posted as (
        update usage_records set posted_entry = posting.entry_id from posting, batch
        where usage_records.vm_id = batch.vm_id and usage_records.generation = batch.generation
          and usage_records.seq = batch.seq and usage_records.posted_entry is null
        returning cost_microusd
      ), total as (
        select carry_microusd + (select coalesce(sum(cost_microusd), 0) from posted) as microusd
        from billing_accounts where tenant_id = ${tenantId}
      ), carried as (
        update billing_accounts set carry_microusd = mod(microusd, ${MICROUSD_PER_CENT})
        from total where tenant_id = ${tenantId}
      ), entered as (
        insert into ledger_entries (entry_id, tenant_id, amount_cents, kind, reference, description)
        select entry_id, ${tenantId}, -div(microusd, ${MICROUSD_PER_CENT}), 'usage', entry_id,
          ${DESCRIPTION}
        from total, posting where microusd >= ${MICROUSD_PER_CENT}
      )
      select count(*)::int as records from posted`.execute(transaction);
    return rows[0]?.records ?? 0;
  });
}
