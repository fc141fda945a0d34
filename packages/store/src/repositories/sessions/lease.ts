import { type Kysely, sql } from 'kysely';
import type { Schema, SessionRow } from '../../schema.ts';
import { ROW, until } from './columns.ts';

/** Who holds a session while starting or stopping it, and for how long unless renewed. */
export interface SessionLease {
  readonly sessionId: string;
  /** A UUID of the holder's own. */
  readonly holder: string;
  readonly seconds: number;
}

/** Takes hold of a session; undefined while another request has it. */
export async function claim(
  db: Kysely<Schema>,
  { sessionId, holder, seconds }: SessionLease,
): Promise<SessionRow | undefined> {
  return db
    .updateTable('sessions')
    .set({ busy_by: holder, busy_until: until(seconds) })
    .where('session_id', '=', sessionId)
    .where(sql<boolean>`(busy_until is null or busy_until < now())`)
    .returning(ROW)
    .executeTakeFirst();
}

/** Keeps hold of it. */
export async function renew(
  db: Kysely<Schema>,
  { sessionId, holder, seconds }: SessionLease,
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ busy_until: until(seconds) })
    .where('session_id', '=', sessionId)
    .where('busy_by', '=', holder)
    .execute();
}

/** Lets go of it. */
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
