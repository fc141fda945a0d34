import { type Kysely, sql } from 'kysely';

/** The size of a session's sandboxes, which a resume keeps. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table sessions add column size json not null default '{}'`.execute(db);
}
