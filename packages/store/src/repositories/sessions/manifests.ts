import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';

const ID_BYTES = 32;

/** The files of a session: its chunks in order. A chunk may be repeated. */
export interface Manifest {
  /** Names these files. */
  readonly filesId: string;
  /** Size of the content of all chunks. */
  readonly sizeBytes: number;
  readonly chunkIds: readonly Buffer[];
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
  const { files_id: filesId, size_bytes, chunk_ids: bytes } = row;
  const chunkIds = Array.from({ length: bytes.length / ID_BYTES }, (_, index) =>
    bytes.subarray(index * ID_BYTES, (index + 1) * ID_BYTES),
  );
  return { filesId, sizeBytes: Number(size_bytes), chunkIds };
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
  const distinct = [...new Map(chunkIds.map((id) => [id.toString('hex'), id])).values()];
  // Used chunks cannot be removed. The locks hold the others.
  await sql`
    select from session_chunks
    where session_id = ${sessionId} and chunk_id = any(${distinct}::bytea[])
      and unused_since is not null
    for no key update`.execute(transaction);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from session_chunks
    where session_id = ${sessionId} and chunk_id = any(${distinct}::bytea[])
      and stored_at is not null`.execute(transaction);
  if (rows[0]?.count !== distinct.length) return false;
  await sql`
    update session_chunks
    set unused_since = case when chunk_id = any(${distinct}::bytea[]) then null else now() end
    where session_id = ${sessionId}
      and (unused_since is null) <> (chunk_id = any(${distinct}::bytea[]))`.execute(transaction);
  await sql`
    insert into session_manifests (session_id, files_id, size_bytes, chunk_ids)
    values (${sessionId}, ${filesId}, ${sizeBytes}, ${Buffer.concat([...chunkIds])})
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
