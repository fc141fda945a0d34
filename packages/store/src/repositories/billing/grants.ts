import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

export const GRANT_DESCRIPTION = 'Credit for new accounts';

/**
 * Opens the billing accounts of tenants that an earlier version created, with `grantCents` of credit each. Returns
 * their number, which is at most `limit`. A tenant gets the credit once, however many control planes do this.
 */
export async function openAccounts(
  db: Kysely<Schema>,
  grantCents: number,
  limit: number,
): Promise<number> {
  const { rows } = await sql`
    with opened as (
      insert into billing_accounts (tenant_id)
      select tenant_id from tenants
      where not exists (select from billing_accounts
        where billing_accounts.tenant_id = tenants.tenant_id)
      limit ${limit}
      on conflict do nothing
      returning tenant_id
    ), granted as (
      insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
      select tenant_id, ${grantCents}::bigint, 'grant', tenant_id, ${GRANT_DESCRIPTION} from opened
      where ${grantCents}::bigint > 0
      on conflict (kind, reference) do nothing
    )
    select 1 from opened`.execute(db);
  return rows.length;
}
