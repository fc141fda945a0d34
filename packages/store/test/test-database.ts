import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { migrate } from '../src/migrate.ts';
import type { Schema } from '../src/schema.ts';
import { startTestPostgres } from './test-postgres.ts';

/** A connection to a database with the current schema. */
export interface TestDatabase extends AsyncDisposable {
  readonly db: Kysely<Schema>;
}

/** Creates a database with the current schema. Disposing of it removes the database. */
export async function startTestDatabase(): Promise<TestDatabase> {
  const postgres = await startTestPostgres();
  const pool = new pg.Pool({ connectionString: postgres.url });
  // The server ends connections that are idle when it stops.
  pool.on('error', () => undefined);
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  await migrate(db);
  return {
    db,
    [Symbol.asyncDispose]: async () => {
      await db.destroy();
      await postgres[Symbol.asyncDispose]();
    },
  };
}
