import { type Kysely, sql } from 'kysely';

/** What a worker is asked to run, as one value. The columns beside it are what records show and capacity counts. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // json, not jsonb, which refuses strings that JSON allows.
  await sql`alter table sandboxes add column placement json`.execute(db);
}
