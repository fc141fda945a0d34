import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';
import type { Extent } from './scope.ts';

const LENGTH_BYTES = 8;
const OFFSET_BYTES = 4;
const ID_BYTES = 32;
const PACKED_BYTES = LENGTH_BYTES + OFFSET_BYTES + ID_BYTES;
/** The offset of a hole. */
const HOLE = -1;

/** One value for all extents of a content, since there can be tens of thousands. */
export function packedExtents(contentId: RawBuilder<unknown>): RawBuilder<Buffer> {
  return sql<Buffer>`(
    select string_agg(int8send(length)
        || int4send(case when chunk_id is null then ${sql.lit(HOLE)} else chunk_offset end)
        || coalesce(chunk_id, decode(repeat('00', ${sql.lit(ID_BYTES)}), 'hex')), ''::bytea order by first)
    from workspace_extents where workspace_extents.content_id = ${contentId})`;
}

/** The extents in the value of {@link packedExtents}, which is null without any. */
export function unpackExtents(packed: Buffer | null): Extent[] {
  const bytes = packed ?? Buffer.alloc(0);
  return Array.from({ length: bytes.length / PACKED_BYTES }, (_, index) => {
    const at = index * PACKED_BYTES;
    const offset = bytes.readInt32BE(at + LENGTH_BYTES);
    const id = bytes.subarray(at + LENGTH_BYTES + OFFSET_BYTES, at + PACKED_BYTES);
    const length = Number(bytes.readBigInt64BE(at));
    return offset === HOLE
      ? { chunkId: undefined, offset: 0, length }
      : { chunkId: id, offset, length };
  });
}

/** The extents of a content, in order. Empty when the content is gone, or has no byte. */
export async function findExtents(
  db: Kysely<Schema>,
  workspaceId: string,
  contentId: string,
): Promise<Extent[]> {
  const { rows } = await sql<{ packed: Buffer | null }>`
    select ${packedExtents(sql`workspace_files.content_id`)} as packed from workspace_files
    where workspace_id = ${workspaceId} and content_id = ${contentId}`.execute(db);
  return unpackExtents(rows[0]?.packed ?? null);
}

/**
 * Marks chunks as used, or returns false if one of them is not stored. The caller has locked the workspace, and names
 * them in extents in the same transaction.
 */
export async function useChunks(
  transaction: Transaction<Schema>,
  workspaceId: string,
  chunkIds: readonly Buffer[],
): Promise<boolean> {
  const named = sql`workspace_id = ${workspaceId} and chunk_id = any(${chunkIds}::bytea[])`;
  // Used chunks cannot be removed. The locks hold the others.
  await sql`
    with unused as materialized (
      select object_key from workspace_chunks
      where ${named} and stored_at is not null and unused_since is not null
      order by chunk_id for no key update)
    update workspace_chunks set unused_since = null from unused
    where workspace_chunks.object_key = unused.object_key`.execute(transaction);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from workspace_chunks where ${named} and unused_since is null`.execute(
    transaction,
  );
  return rows[0]?.count === chunkIds.length;
}

/** The ids of contents, as the text of an array: there can be hundreds of thousands. */
export type ContentIds = string | null;

/** The value of a column of content ids, over all rows of a statement. */
export const collectContentIds = sql<ContentIds>`(array_agg(content_id) filter (where content_id is not null))::text`;

/**
 * Removes contents, and notes which chunks are unused without them. The transaction has locked the workspace: two that
 * remove the last two uses of a chunk would each see the other's.
 */
export async function removeContents(
  transaction: Kysely<Schema>,
  workspaceId: string,
  contentIds: ContentIds | undefined,
): Promise<void> {
  if (contentIds === null || contentIds === undefined) return;
  const { rows } = await sql<{ chunk_ids: string | null }>`
    with removed as (
      delete from workspace_extents where content_id = any(${contentIds}::bigint[])
      returning chunk_id)
    select (array_agg(distinct chunk_id) filter (where chunk_id is not null))::text as chunk_ids
    from removed`.execute(transaction);
  const chunkIds = rows[0]?.chunk_ids ?? null;
  if (chunkIds === null) return;
  await sql`
    with unused as materialized (
      select object_key from workspace_chunks
      where workspace_id = ${workspaceId} and chunk_id = any(${chunkIds}::bytea[])
        and not exists (select from workspace_extents
          where workspace_extents.workspace_id = ${workspaceId}
            and workspace_extents.chunk_id = workspace_chunks.chunk_id)
      order by chunk_id for no key update)
    update workspace_chunks set unused_since = now() from unused
    where workspace_chunks.object_key = unused.object_key`.execute(transaction);
}
