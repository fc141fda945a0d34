import { type Kysely, sql } from 'kysely';

/** Indexes by which the flushes and uploads of a workspace are found when it is removed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create index workspace_flushes_workspace on workspace_flushes (workspace_id);
       create index workspace_uploads_workspace on workspace_uploads (workspace_id)`,
    )
    .execute(db);
}
