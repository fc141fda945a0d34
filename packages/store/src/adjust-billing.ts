import { connect } from './connect.ts';
import { REQUEST_DEADLINES } from './pool.ts';
import { addEntry, type NewEntry } from './repositories/billing/entries.ts';

/** `repeated`: there is an adjustment with this reference. `unknown_account`: there is no such tenant. */
export type AdjustmentOutcome = 'added' | 'repeated' | 'unknown_account';

/**
 * Adds an adjustment to the ledger in a database, which the service may be using. Amounts are in cents.
 * @throws ServiceError `database_unavailable`
 */
export async function adjustBilling(
  url: string,
  adjustment: Omit<NewEntry, 'kind'>,
): Promise<AdjustmentOutcome> {
  const db = connect(url, REQUEST_DEADLINES);
  try {
    const tenant = await db
      .selectFrom('tenants')
      .select('tenant_id')
      .where('tenant_id', '=', adjustment.tenantId)
      .executeTakeFirst();
    if (tenant === undefined) return 'unknown_account';
    const isAdded = await addEntry(db, { ...adjustment, kind: 'adjustment' });
    return isAdded ? 'added' : 'repeated';
  } finally {
    await db.destroy();
  }
}
