import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** When and by how much an account is topped up by itself. Amounts are in cents. */
export interface AutoTopup {
  readonly enabled: boolean;
  /** A balance below this triggers a top-up. */
  readonly threshold: number;
  readonly amount: number;
}

const NEVER: AutoTopup = { enabled: false, threshold: 0, amount: 0 };

/** The sum of a tenant's entries, in cents. */
export async function balance(db: Kysely<Schema>, tenantId: string): Promise<number> {
  const row = await db
    .selectFrom('billing_accounts')
    .select('balance_cents')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst();
  return Number(row?.balance_cents ?? 0);
}

/** A tenant's settings of automatic top-ups; disabled unless the tenant has set them. */
export async function autoTopup(db: Kysely<Schema>, tenantId: string): Promise<AutoTopup> {
  const row = await db
    .selectFrom('billing_accounts')
    .select(['auto_topup', 'threshold_cents', 'topup_cents'])
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst();
  if (row === undefined) return NEVER;
  return {
    enabled: row.auto_topup,
    threshold: Number(row.threshold_cents),
    amount: Number(row.topup_cents),
  };
}

/** Replaces the settings. Failures of earlier top-ups no longer count. */
export async function setAutoTopup(
  db: Kysely<Schema>,
  tenantId: string,
  { enabled, threshold, amount }: AutoTopup,
): Promise<void> {
  await sql`
    insert into billing_accounts (tenant_id, auto_topup, threshold_cents, topup_cents)
    values (${tenantId}, ${enabled}, ${threshold}, ${amount})
    on conflict (tenant_id) do update set auto_topup = excluded.auto_topup,
      threshold_cents = excluded.threshold_cents, topup_cents = excluded.topup_cents,
      topup_failures = 0`.execute(db);
}
