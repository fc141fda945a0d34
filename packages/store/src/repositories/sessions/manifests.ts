import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';
import { joinIds, type StoredContent, splitIds } from './content.ts';
import { holdChunks } from './hold-chunks.ts';

/** The files of a session. */
export interface Manifest extends StoredContent {
  /** Names these files. */
  readonly filesId: string;
}

/** The manifest of a session's files. Undefined when its files are not stored as chunks. */
export async function findManifest(
  db: Kysely<Schema>,
  sessionId: string,
): Promise<Manifest | undefined> {
  const row = await db
    .selectFrom('session_manifests')
    .selectAll()
    .where('session_id', '=', sessionId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { files_id: filesId, size_bytes, chunk_ids } = row;
  return { filesId, sizeBytes: Number(size_bytes), chunkIds: splitIds(chunk_ids) };
}

/**
 * Makes this the manifest of a session whose row the transaction has locked. False when a chunk is not stored, and then
 * nothing changes. Rows change only for chunks that begin or cease to be used.
 */
export async function takeManifest(
  transaction: Transaction<Schema>,
  sessionId: string,
  { filesId, sizeBytes, chunkIds }: Manifest,
): Promise<boolean> {
  if (!(await holdChunks(transaction, sessionId, chunkIds, 'files'))) return false;
  await sql`
    update session_chunks
    set unused_since = case when chunk_id = any(${chunkIds}::bytea[]) then null else now() end
    where session_id = ${sessionId} and not of_transcript
      and (unused_since is null) <> (chunk_id = any(${chunkIds}::bytea[]))`.execute(transaction);
  await sql`
    insert into session_manifests (session_id, files_id, size_bytes, chunk_ids)
    values (${sessionId}, ${filesId}, ${sizeBytes}, ${joinIds(chunkIds)})
    on conflict (session_id) do update set files_id = excluded.files_id,
      size_bytes = excluded.size_bytes, chunk_ids = excluded.chunk_ids`.execute(transaction);
  // Files from before there were chunks.
  await sql`delete from session_uploads where session_id = ${sessionId}`.execute(transaction);
  return true;
}

/** Counts the bytes that a session keeps, after they have changed. */
export async function countKeptBytes(
  transaction: Transaction<Schema>,
  sessionId: string,
): Promise<void> {
  await sql`
    update sessions set kept_bytes = coalesce(octet_length(conversation), 0)
      + coalesce((select sum(octet_length(frames)) from session_frames frames
          where frames.session_id = sessions.session_id), 0)
      + coalesce((select sum(stored_bytes) from session_chunks chunks
          where chunks.session_id = sessions.session_id and unused_since is null), 0)
      + coalesce((select sum(size_bytes) from session_uploads uploads
          where uploads.session_id = sessions.session_id and committed), 0)
    where session_id = ${sessionId}`.execute(transaction);
}
