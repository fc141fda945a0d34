import { type Kysely, sql } from 'kysely';

/** Whether a statement of another transaction waits for rows that this one has locked. */
export async function isAwaited<T>(transaction: Kysely<T>): Promise<boolean> {
  const { rows } = await sql`
    select from pg_locks where not granted
      and transactionid = pg_current_xact_id_if_assigned()::xid`.execute(transaction);
  return rows.length > 0;
}

/** Locks a row at once. Fails when another transaction has locked it. */
export async function lockNow<T>(
  transaction: Kysely<T>,
  table: 'tenants' | 'workers',
  id: string,
): Promise<void> {
  const key = sql.ref(table === 'tenants' ? 'tenant_id' : 'worker_id');
  await sql`
    select from ${sql.table(table)} where ${key} = ${id} for no key update nowait`.execute(
    transaction,
  );
}
