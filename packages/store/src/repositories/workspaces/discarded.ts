import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** A control plane that claimed objects and died leaves them to others after this time. */
const CLAIM_SECONDS = 600;

/** Claims up to `limit` objects that are due to be deleted. From then on no file can use them. */
export async function claimDiscarded(db: Kysely<Schema>, limit: number): Promise<string[]> {
  const { rows } = await sql<{ object_key: string }>`
    update discarded_objects
    set claimed = true, due_at = now() + make_interval(secs => ${CLAIM_SECONDS})
    where object_key in (
      select object_key from discarded_objects where due_at <= now()
      order by due_at limit ${limit} for update skip locked)
    returning object_key`.execute(db);
  return rows.map((row) => row.object_key);
}

/** Forgets objects that have been deleted. */
export async function forgetDiscarded(
  db: Kysely<Schema>,
  objectKeys: readonly string[],
): Promise<void> {
  await sql`delete from discarded_objects where object_key = any(${[...objectKeys]})`.execute(db);
}

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
      limit ${limit} for update skip locked)
      and not exists (select from workspace_uploads
        where workspace_uploads.workspace_id = workspaces.workspace_id)
      and not exists (select from workspace_chunks
        where workspace_chunks.workspace_id = workspaces.workspace_id)
      and not exists (select from workspace_flushes
        where workspace_flushes.workspace_id = workspaces.workspace_id)`.execute(db);
  return Number(numAffectedRows ?? 0);
}
