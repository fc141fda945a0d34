import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../schema.ts';
import { type ContentIds, collectContentIds, removeContents } from './extents.ts';
import { lockWorkspace } from './locks.ts';

/** Deletes a file. The bytes of its content are to be deleted. False if there is no such file. */
export async function removeFile(
  db: Kysely<Schema>,
  workspaceId: string,
  path: Buffer,
): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    await lockWorkspace(transaction, workspaceId);
    const which = sql`path = ${path} and kind = 'file'`;
    return (await removeEntries(transaction, workspaceId, which)) > 0;
  });
}

/**
 * Deletes every entry of a workspace, and its uploads, which can become files no more. The bytes are to be deleted.
 * Returns the number of entries.
 */
export async function removeAllFiles(db: Kysely<Schema>, workspaceId: string): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    await lockWorkspace(transaction, workspaceId);
    await sql`
      update workspace_uploads set taken_at = now()
      where workspace_id = ${workspaceId} and taken_at is null`.execute(transaction);
    return removeEntries(transaction, workspaceId, sql`true`);
  });
}

/** Deletes entries of a workspace that the transaction has locked, and returns their number. */
async function removeEntries(
  db: Kysely<Schema>,
  workspaceId: string,
  condition: RawBuilder<unknown>,
): Promise<number> {
  const { rows } = await sql<{ count: number; content_ids: ContentIds }>`
    with removed as (
      delete from workspace_files where workspace_id = ${workspaceId} and ${condition}
      returning kind, size_bytes, object_key, content_id),
    discarded as (
      insert into object_deletions (object_key, due_at)
      select object_key, now() from removed where object_key is not null
      on conflict do nothing),
    counted as (
      update workspaces set
        size_bytes = size_bytes - (select coalesce(sum(size_bytes), 0) from removed),
        file_count = file_count - (select count(*) from removed where kind = 'file'),
        entry_count = entry_count - (select count(*) from removed)
      where workspace_id = ${workspaceId})
    select count(*)::int as count, ${collectContentIds} as content_ids from removed`.execute(db);
  await removeContents(db, workspaceId, rows[0]?.content_ids);
  return rows[0]?.count ?? 0;
}
