import { type Kysely, sql } from 'kysely';

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
