import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { migrate } from '../src/migrate.ts';
import type { Schema } from '../src/schema.ts';
import { startTestPostgres } from './test-postgres.ts';

/** A database with the current schema, on a server of its own. */
export interface TestDatabase extends AsyncDisposable {
  readonly db: Kysely<Schema>;
}

/** Starts a server and migrates its database. Disposing of it stops the server and removes its files. */
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
