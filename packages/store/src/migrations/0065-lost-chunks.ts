import { type Kysely, sql } from 'kysely';
import type { NewIndex } from './schema-migration.ts';

const TABLES = ['session_chunks', 'workspace_chunks'];

/** Notes which chunks have lost their objects. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of TABLES) {
    await sql.raw(`alter table ${table} add column lost_at timestamptz(3)`).execute(db);
  }
}

/** Make it cheap to compare the chunks with a listing of the objects: object stores list by the bytes of the keys. */
export const indexes: readonly NewIndex[] = TABLES.flatMap((table) => [
  { name: `${table}_lost`, on: `${table} (object_key) where lost_at is not null` },
  { name: `${table}_objects`, on: `${table} (object_key collate "C")` },
]);
