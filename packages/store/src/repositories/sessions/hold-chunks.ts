import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';

/**
 * What chunks are part of: the files of a session, or its transcript, which is its conversation and its frames. The keys
 * of the two differ, and so do the ids of equal chunks.
 */
export type ChunkKind = 'files' | 'transcript';

/** Keeps chunks that a transaction names from being removed until it ends. False when one of them is not stored. */
export async function holdChunks(
  transaction: Transaction<Schema>,
  sessionId: string,
  ids: readonly Buffer[],
  kind: ChunkKind,
): Promise<boolean> {
  const distinct = [...new Map(ids.map((id) => [id.toString('hex'), id])).values()];
  // Used chunks cannot be removed. The locks hold the others.
  await sql`
    select from session_chunks
    where session_id = ${sessionId} and chunk_id = any(${distinct}::bytea[])
      and unused_since is not null
    order by chunk_id for no key update`.execute(transaction);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from session_chunks
    where session_id = ${sessionId} and chunk_id = any(${distinct}::bytea[])
      and of_transcript = ${kind === 'transcript'} and stored_at is not null`.execute(transaction);
  return rows[0]?.count === distinct.length;
}
