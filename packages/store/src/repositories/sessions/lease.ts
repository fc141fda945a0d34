import { type Kysely, sql } from 'kysely';
import type { Schema, SessionRow } from '../../schema.ts';
import { fromNow, SESSION_COLUMNS } from './columns.ts';

/** Exclusive access to a session while a request starts or stops it, until it expires or is released. */
export interface SessionLease {
  readonly sessionId: string;
  /** A UUID that identifies the holder. */
  readonly holder: string;
  readonly seconds: number;
}

/** Acquires the lease of a session. Undefined while another request holds it. */
export async function claim(
  db: Kysely<Schema>,
  { sessionId, holder, seconds }: SessionLease,
): Promise<SessionRow | undefined> {
  return db
    .updateTable('sessions')
    .set({ busy_by: holder, busy_until: fromNow(seconds) })
    .where('session_id', '=', sessionId)
    .where(sql<boolean>`(busy_until is null or busy_until < now())`)
    .returning(SESSION_COLUMNS)
    .executeTakeFirst();
}

/** Extends the lease. */
export async function renew(
  db: Kysely<Schema>,
  { sessionId, holder, seconds }: SessionLease,
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ busy_until: fromNow(seconds) })
    .where('session_id', '=', sessionId)
    .where('busy_by', '=', holder)
    .execute();
}

/** Releases the lease. */
export async function release(
  db: Kysely<Schema>,
  { sessionId, holder }: Omit<SessionLease, 'seconds'>,
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ busy_by: null, busy_until: null })
    .where('session_id', '=', sessionId)
    .where('busy_by', '=', holder)
    .execute();
}
