import { type Kysely, sql } from 'kysely';
import { MIGRATIONS } from './migrations/index.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';

/** That of Kysely's migrator, which earlier versions used. */
const LOCK_ID = '3853314791062309107';

/**
 * Runs the migrations that expand the schema in one transaction. Its lock lets several control planes start at the same
 * time, and ends with the transaction, so that it needs no session of its own: a pooler gives each transaction another
 * one. Migrations of later versions may have run: this version does not notice what they add.
 */
export async function migrate<T>(
  db: Kysely<T>,
  migrations: Readonly<Record<string, SchemaMigration>> = MIGRATIONS,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(${sql.lit(LOCK_ID)}::bigint)`.execute(transaction);
    await sql`create table if not exists kysely_migration (
      name varchar(255) primary key, timestamp varchar(255) not null)`.execute(transaction);
    const executed = await executedMigrations(transaction);
    for (const [name, { up, contraction }] of Object.entries(migrations)) {
      if (contraction !== undefined || executed.has(name)) continue;
      await up(transaction);
      await noteExecuted(transaction, name);
    }
  });
}

/** The names of the migrations that have run. */
export async function executedMigrations<T>(db: Kysely<T>): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  return new Set(rows.map(({ name }) => name));
}

/** Notes that a migration has run, in its transaction. */
export async function noteExecuted<T>(transaction: Kysely<T>, name: string): Promise<void> {
  const timestamp = new Date().toISOString();
  await sql`insert into kysely_migration (name, timestamp) values (${name}, ${timestamp})`.execute(
    transaction,
  );
}
