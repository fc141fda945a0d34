import { type Kysely, sql } from 'kysely';

/** Marks the meters whose records have been summed up, and an index by which the others are found. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `alter table usage_meters add column is_folded boolean not null default false;
       create index usage_meters_unfolded on usage_meters (vm_id, generation) where not is_folded`,
    )
    .execute(db);
}
