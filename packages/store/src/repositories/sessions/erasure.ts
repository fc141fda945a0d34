import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema, SessionRow } from '../../schema.ts';
import { SESSION_COLUMNS } from './columns.ts';

/**
 * Records that a session is to be erased, whether it is active or not. From then on it cannot be resumed. It is erased
 * once it has ended, even if whoever requested it is gone by then.
 */
export async function requestErasure(db: Kysely<Schema>, sessionId: string): Promise<void> {
  await sql`
    update sessions set erase_requested_at = coalesce(erase_requested_at, now())
    where session_id = ${sessionId}`.execute(db);
}

/** Erases what an ended session keeps and returns its record. Undefined while the session is active. */
export async function eraseEnded(
  db: Kysely<Schema>,
  sessionId: string,
): Promise<SessionRow | undefined> {
  return db.transaction().execute(async (transaction) => {
    await erase(
      transaction,
      sql`session_id = ${sessionId} and erased_at is null for no key update`,
    );
    return transaction
      .selectFrom('sessions')
      .select(SESSION_COLUMNS)
      .where('session_id', '=', sessionId)
      .where('erased_at', 'is not', null)
      .executeTakeFirst();
  });
}

/** Erases up to `limit` ended sessions whose erasure was requested. Returns their number. */
export function eraseRequested(db: Kysely<Schema>, limit: number): Promise<number> {
  return eraseBatch(db, sql`erase_requested_at is not null and erased_at is null`, limit);
}

/** Erases what up to `limit` sessions keep that ended longer ago than this. Returns their number. */
export function eraseExpired(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<number> {
  const isExpired = sql`ended_at < ${ago(olderThanSeconds)} and erased_at is null`;
  return eraseBatch(db, isExpired, limit);
}

function eraseBatch(
  db: Kysely<Schema>,
  condition: RawBuilder<unknown>,
  limit: number,
): Promise<number> {
  return db
    .transaction()
    .execute((transaction) =>
      erase(transaction, sql`${condition} limit ${limit} for no key update skip locked`),
    );
}

/**
 * The one routine of erasure: removes the conversation, the files and the frames of the selected sessions that have
 * ended, and the logs and instructions of their agents. The records stay. A turn is committed under a lock on the
 * session and refused afterwards, so that a late one brings nothing back. Returns the number of erased sessions.
 */
async function erase(
  transaction: Transaction<Schema>,
  selection: RawBuilder<unknown>,
): Promise<number> {
  const { rows } = await sql<{ session_id: string }>`
    update sessions set erased_at = now(), erase_requested_at = coalesce(erase_requested_at, now()),
      conversation = null, conversation_chunks = null, conversation_bytes = null,
      files_id = null, app = null, kept_bytes = 0
    where session_id = any(array(
      select session_id from sessions where status <> 'active' and ${selection}))
    returning session_id`.execute(transaction);
  const ids = rows.map((row) => row.session_id);
  if (ids.length === 0) return 0;
  await transaction.deleteFrom('session_frames').where('session_id', 'in', ids).execute();
  await transaction.deleteFrom('session_uploads').where('session_id', 'in', ids).execute();
  await giveUpChunks(transaction, ids);
  await sql`
    delete from agent_logs using sandboxes
    where sandboxes.vm_id = agent_logs.vm_id and sandboxes.session_id = any(${ids}::uuid[])`.execute(
    transaction,
  );
  return ids.length;
}

/** Gives up all chunks of sessions that are erased. Their objects are to be deleted. */
async function giveUpChunks(
  transaction: Transaction<Schema>,
  sessionIds: readonly string[],
): Promise<void> {
  await sql`delete from session_manifests where session_id = any(${sessionIds}::uuid[])`.execute(
    transaction,
  );
  await sql`
    with removed as (
      delete from session_chunks where session_id = any(${sessionIds}::uuid[])
      returning object_key)
    insert into object_deletions (object_key) select object_key from removed
    on conflict do nothing`.execute(transaction);
}
