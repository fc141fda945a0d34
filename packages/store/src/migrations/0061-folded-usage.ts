import { type Kysely, sql } from 'kysely';
import type { NewIndex } from './schema-migration.ts';

/** Marks the meters whose records have been summed up. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw('alter table usage_meters add column is_folded boolean not null default false')
    .execute(db);
}

/** By which the other meters are found. */
export const indexes: readonly NewIndex[] = [
  { name: 'usage_meters_unfolded', on: 'usage_meters (vm_id, generation) where not is_folded' },
];
