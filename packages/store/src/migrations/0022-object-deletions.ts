import { type Kysely, sql } from 'kysely';

/** One table for all objects that are to be deleted, of sessions and of workspaces, and a look at those to come. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [MERGE, UNUSED]) await sql.raw(statement).execute(db);
}

const MERGE = `
  drop index object_deletions_age;
  alter table object_deletions rename column requested_at to due_at;
  -- Whether a control plane is deleting the object, so that nothing may use it any more.
  alter table object_deletions add column claimed boolean not null default false;
  insert into object_deletions (object_key, due_at, claimed)
    select object_key, due_at, claimed from discarded_objects on conflict do nothing;
  drop table discarded_objects;
  create index object_deletions_due on object_deletions (due_at);`;

const UNUSED = `
  -- For the bytes of a tenant's unused chunks.
  create index session_chunks_unused_bytes on session_chunks (session_id)
    include (stored_bytes) where unused_since is not null;
  create index workspace_chunks_unused_bytes on workspace_chunks (workspace_id)
    include (stored_bytes) where unused_since is not null;`;
