import { type Kysely, sql } from 'kysely';

const TABLES = ['session_chunks', 'workspace_chunks'];

/** Notes which chunks have lost their objects, and makes it cheap to compare the chunks with a listing of the objects. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) {
    // Object stores list by the bytes of the keys.
    const statements = `
      alter table ${table} add column lost_at timestamptz(3);
      create index ${table}_lost on ${table} (object_key) where lost_at is not null;
      create index ${table}_objects on ${table} (object_key collate "C");`;
    await sql.raw(statements).execute(db);
  }
}
