import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Deletes a file and returns the key of its object, which is to be deleted; undefined if there is no such file. */
export async function removeFile(
  db: Kysely<Schema>,
  workspaceId: string,
  path: Buffer,
): Promise<string | undefined> {
  const keys = await db
    .transaction()
    .execute((transaction) =>
      removeFiles(transaction, workspaceId, sql`workspace_id = ${workspaceId} and path = ${path}`),
    );
  return keys[0];
}

/**
 * Deletes every file of a workspace, and its uploads, which can become files no more. Returns the keys of the objects,
 * which are to be deleted.
 */
export async function removeAllFiles(db: Kysely<Schema>, workspaceId: string): Promise<string[]> {
  return db.transaction().execute(async (transaction) => {
    await sql`select from workspaces where workspace_id = ${workspaceId} for update`.execute(
      transaction,
    );
    await sql`
      update workspace_uploads set taken_at = now()
      where workspace_id = ${workspaceId} and taken_at is null`.execute(transaction);
    return removeFiles(transaction, workspaceId, sql`workspace_id = ${workspaceId}`);
  });
}

async function removeFiles(
  db: Kysely<Schema>,
  workspaceId: string,
  condition: ReturnType<typeof sql>,
): Promise<string[]> {
  const { rows } = await sql<{ object_key: string }>`
    with removed as (
      delete from workspace_files where ${condition} returning size_bytes, object_key
    ), counted as (
      update workspaces set
        size_bytes = size_bytes - (select coalesce(sum(size_bytes), 0) from removed),
        file_count = file_count - (select count(*) from removed)
      where workspace_id = ${workspaceId}
    )
    insert into discarded_objects (object_key, due_at) select object_key, now() from removed
    returning object_key`.execute(db);
  return rows.map((row) => row.object_key);
}
