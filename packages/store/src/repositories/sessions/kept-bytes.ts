import { type Kysely, sql, type Transaction } from 'kysely';
import { lockName } from '../../advisory-lock.ts';
import type { Schema, SessionRow } from '../../schema.ts';

/** The sessions of a tenant would keep more than they may. Rolls the transaction back that would make them. */
export class StorageFull extends Error {}

/** The bytes that the sessions of a tenant keep. */
export async function keptBytes(db: Kysely<Schema>, tenantId: string): Promise<number> {
  const { rows } = await sql<{ bytes: string }>`
    select coalesce(sum(kept_bytes), 0) as bytes from sessions
    where tenant_id = ${tenantId} and erased_at is null`.execute(db);
  return Number(rows[0]?.bytes ?? 0);
}

/**
 * Checks what the tenant's sessions keep after a session has changed, unless it keeps no more than before. `before` is
 * the session as it was.
 * @throws StorageFull
 */
export async function checkQuota(
  transaction: Transaction<Schema>,
  sessionId: string,
  before: Pick<SessionRow, 'tenant_id' | 'kept_bytes'>,
  most: number,
): Promise<void> {
  if (most === Number.POSITIVE_INFINITY) return;
  const { tenant_id: tenantId } = before;
  const { kept_bytes: after } = await transaction
    .selectFrom('sessions')
    .select('kept_bytes')
    .where('session_id', '=', sessionId)
    .executeTakeFirstOrThrow();
  if (Number(after) <= Number(before.kept_bytes)) return;
  // Commits of a tenant that add bytes take turns, so that each sees those of the others. This is no lock on the
  // tenant's row, which the end of a sandbox locks before its session.
  await lockName(transaction, `session bytes ${tenantId}`);
  if ((await keptBytes(transaction, tenantId)) > most) throw new StorageFull();
}
