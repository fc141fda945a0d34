import { type Kysely, sql } from 'kysely';

/** The placement of a sandbox as one value, beside the columns that records show and that count capacity. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // json, not jsonb, which refuses strings that JSON allows.
  await sql`alter table sandboxes add column placement json`.execute(db);
}
