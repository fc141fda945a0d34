import { type Kysely, sql } from 'kysely';

/** Which machine has registered as a worker, and when another one last asked for the same id. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw('alter table workers add column instance_id text, add column contested_at timestamptz')
    .execute(db);
}
