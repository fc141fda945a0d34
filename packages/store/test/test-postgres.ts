import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { startTestServer } from './test-server.ts';

/** The environment variable with the URL of the shared server. Its database `postgres` is the template of the others. */
export const SHARED_SERVER = 'TEST_POSTGRES_URL';

/** A PostgreSQL database for the tests of one file. */
export interface TestPostgres extends AsyncDisposable {
  readonly url: string;
}

/**
 * Creates a database with the current schema on the server that the test files of a run share. Outside of such a run, starts
 * a server with an empty database. Disposing of it removes the database.
 *
 * A test that stops its server, changes its settings or needs an empty database takes `startTestServer`.
 */
export async function startTestPostgres(): Promise<TestPostgres> {
  const shared = process.env[SHARED_SERVER];
  return shared === undefined ? startTestServer() : copyDatabase(shared);
}

async function copyDatabase(server: string): Promise<TestPostgres> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  // `URL` refuses the URL of a socket, which has no host.
  const urlOf = (database: string) => server.replace('/postgres?', `/${database}?`);
  const run = async (statement: string) => {
    // Nobody may be connected to a database that is copied.
    const client = new pg.Client({ connectionString: urlOf('template1') });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await run(`create database ${name} template postgres`);
  return {
    url: urlOf(name),
    [Symbol.asyncDispose]: () => run(`drop database ${name} with (force)`),
  };
}
