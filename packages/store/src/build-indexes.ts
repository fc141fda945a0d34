import { type Kysely, sql } from 'kysely';
import { executedMigrations, noteExecuted } from './executed-migrations.ts';
import type { NewIndex, SchemaMigration } from './migrations/schema-migration.ts';
import { repeatUntilDone } from './repeat-until-done.ts';

/** Held by whoever builds indexes. */
const LOCK_ID = 7_210_551_914_205;
/** For all indexes of a migration, in milliseconds. */
const BUILD_MS = 3_600_000;

/** By which it is noted that the indexes of a migration are there. */
const noteOf = (migration: string) => `${migration} indexes`;

/** Creates the indexes of a migration in the transaction that makes a new database. */
export async function createIndexes<T>(
  transaction: Kysely<T>,
  name: string,
  { indexes = [] }: SchemaMigration,
): Promise<void> {
  if (indexes.length === 0) return;
  for (const index of indexes) {
    await sql.raw(`create index ${index.name} on ${index.on}`).execute(transaction);
  }
  await noteExecuted(transaction, noteOf(name));
}

/**
 * Builds the indexes of migrations that have run, while others use the tables. That waits for transactions which were open
 * before, but nobody waits for it. One that a process has left unfinished is built again.
 * @throws MigrationTimeoutError when one could not be built in time
 */
export async function buildIndexes<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, SchemaMigration>>,
): Promise<void> {
  const executed = await executedMigrations(db);
  for (const [name, { indexes = [] }] of Object.entries(migrations)) {
    if (indexes.length === 0 || !executed.has(name) || executed.has(noteOf(name))) continue;
    await repeatUntilDone(() => buildAlone(db, name, indexes), BUILD_MS);
  }
}

/** False while another process builds indexes. */
async function buildAlone<T>(
  db: Kysely<T>,
  name: string,
  indexes: readonly NewIndex[],
): Promise<boolean> {
  // The build cannot be part of a transaction, so another one on a connection of its own holds the lock. It keeps no snapshot,
  // for which the build would wait. Others try the lock instead of waiting for it: a statement that waits has a snapshot.
  return db.transaction().execute(async (holder) => {
    const { rows } = await sql<{ locked: boolean }>`
      select pg_try_advisory_xact_lock(${sql.lit(LOCK_ID)}::bigint) as locked`.execute(holder);
    if (rows[0]?.locked !== true) return false;
    if ((await executedMigrations(holder)).has(noteOf(name))) return true;
    for (const index of indexes) {
      if (!(await build(db, index))) return false;
    }
    await noteExecuted(holder, noteOf(name));
    return true;
  });
}

/**
 * False while another process, or the server for one that has ended, creates or drops the index, of which it may be too early to
 * see anything.
 */
async function build<T>(db: Kysely<T>, { name, on }: NewIndex): Promise<boolean> {
  const found = await look(db, name);
  if (found?.is_valid) return true;
  if (found?.is_in_progress) return false;
  await sql.raw(`drop index concurrently if exists ${name}`).execute(db);
  await sql.raw(`create index concurrently if not exists ${name} on ${on}`).execute(db);
  return (await look(db, name))?.is_valid === true;
}

async function look<T>(
  db: Kysely<T>,
  name: string,
): Promise<{ is_valid: boolean; is_in_progress: boolean } | undefined> {
  const { rows } = await sql<{ is_valid: boolean; is_in_progress: boolean }>`
    select indisvalid as is_valid, exists (
      select from pg_stat_progress_create_index as build
      where datname = current_database() and build.relid = indrelid) as is_in_progress
    from pg_index where indexrelid = to_regclass(${name})`.execute(db);
  return rows[0];
}
