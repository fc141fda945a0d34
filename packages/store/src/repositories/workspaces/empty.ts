import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Removes up to `limit` workspaces without entries, uploads, chunks and flushes that were last used longer ago than this. */
export async function removeEmpty(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from workspaces where workspace_id in (
      select workspace_id from workspaces where entry_count = 0
        and used_at < now() - make_interval(secs => ${olderThanSeconds})
        and not exists (select from workspace_uploads
          where workspace_uploads.workspace_id = workspaces.workspace_id)
        and not exists (select from workspace_chunks
          where workspace_chunks.workspace_id = workspaces.workspace_id)
        and not exists (select from workspace_flushes
          where workspace_flushes.workspace_id = workspaces.workspace_id)
      limit ${limit} for update skip locked)`.execute(db);
  return Number(numAffectedRows ?? 0);
}
