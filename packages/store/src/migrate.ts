import { type Kysely, sql, type Transaction } from 'kysely';
import { buildIndexes, createIndexes } from './build-indexes.ts';
import { executedMigrations, noteExecuted } from './executed-migrations.ts';
import { MIGRATIONS } from './migrations/index.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import { repeatUntilDone } from './repeat-until-done.ts';

/** That of Kysely's migrator, which earlier versions used. */
const LOCK_ID = '3853314791062309107';
/** How long a migration waits for a table, in milliseconds. Statements that come later wait for the table with it. */
const LOCK_MS = 2_000;
const STATEMENT_MS = 300_000;
/** How long all of them may take with their repetitions, in milliseconds. */
const EXPAND_MS = 300_000;

/**
 * Runs the migrations that expand the schema, each in a transaction of its own, and builds their indexes. A migration that
 * does not get its locks at once is run again, so that those who use the tables never wait long for it; what has run when the
 * process ends is not run again. Several control planes may start at the same time, also through a pooler, which gives each
 * transaction another session: the locks end with their transaction. Migrations of later versions may have run: this version
 * does not notice what they add.
 * @throws MigrationTimeoutError when the locks do not become free in time
 */
export async function migrate<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, SchemaMigration>> = MIGRATIONS,
): Promise<void> {
  await repeatUntilDone(() => expandAll(db, migrations), EXPAND_MS);
  await buildIndexes(db, migrations);
}

async function expandAll<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, SchemaMigration>>,
): Promise<true> {
  for (;;) {
    if (await db.transaction().execute((trx) => expand(trx, migrations))) return true;
  }
}

/** Runs the next migration; all of them in a new database, which nobody uses. True when none is left. */
async function expand<T>(
  trx: Transaction<T>,
  migrations: Readonly<Record<string, SchemaMigration>>,
): Promise<boolean> {
  await sql
    .raw(`set local lock_timeout = ${LOCK_MS}; set local statement_timeout = ${STATEMENT_MS}`)
    .execute(trx);
  await sql`select pg_advisory_xact_lock(${sql.lit(LOCK_ID)}::bigint)`.execute(trx);
  await sql`create table if not exists kysely_migration (
    name varchar(255) primary key, timestamp varchar(255) not null)`.execute(trx);
  const executed = await executedMigrations(trx);
  const pending = Object.entries(migrations).filter(
    ([name, { contraction }]) => contraction === undefined && !executed.has(name),
  );
  const isNew = executed.size === 0;
  for (const [name, migration] of isNew ? pending : pending.slice(0, 1)) {
    await migration.up?.(trx);
    await noteExecuted(trx, name);
    if (isNew) await createIndexes(trx, name, migration);
  }
  return isNew || pending.length <= 1;
}
