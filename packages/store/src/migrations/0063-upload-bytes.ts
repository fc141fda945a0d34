import { type Kysely, sql } from 'kysely';
import type { NewIndex } from './schema-migration.ts';

/** The bytes that uploads may have, and those of the objects of replaced files, for the bounds of each tenant. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `-- The announced size, or the largest that is allowed.
       alter table workspace_uploads add column reserved_bytes bigint not null default 0;
       -- Of objects that are kept for a while because a tenant may still download them.
       alter table object_deletions add column tenant_id text, add column size_bytes bigint`,
    )
    .execute(db);
}

export const indexes: readonly NewIndex[] = [
  {
    name: 'object_deletions_of_tenant',
    on: 'object_deletions (tenant_id, due_at) where tenant_id is not null',
  },
];
