import { type Kysely, sql } from 'kysely';

/**
 * A random key of each worker, by which placement finds a few of them without reading the fleet. The index names no column
 * that a heartbeat changes, so that heartbeats leave it alone.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `alter table workers add column placement_key double precision not null default random();
       create index workers_placement on workers (placement_key)
         where not draining and not cordoned and removed_at is null`,
    )
    .execute(db);
}
