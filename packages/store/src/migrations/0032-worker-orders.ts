import { type Kysely, sql } from 'kysely';

/** What an operator has ordered for a worker. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `alter table workers
         add column cordoned boolean not null default false,
         add column drain_requested boolean not null default false,
         add column removed_at timestamptz`,
    )
    .execute(db);
}
