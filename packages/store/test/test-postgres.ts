import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { EmbeddedPostgres } from '../src/embedded/embedded-postgres.ts';

/** A PostgreSQL database for the tests of one file. */
export interface TestPostgres extends AsyncDisposable {
  readonly url: string;
  /** Stops the server. Its data and URL stay valid for `start`. */
  stop(): Promise<void>;
  /** Restarts a stopped server. */
  start(): Promise<void>;
}

/**
 * Starts a server in a temporary directory. Disposing of it stops the server and removes its files.
 *
 * With `TEST_POSTGRES_URL`, the URL of such a server for many test files, creates a copy of its database there instead, which
 * is removed with that server. A test cannot stop it.
 */
export async function startTestPostgres(): Promise<TestPostgres> {
  const { TEST_POSTGRES_URL: shared } = process.env;
  return shared === undefined ? startServer() : createDatabase(shared);
}

async function startServer(): Promise<TestPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-store-'));
  const start = () => EmbeddedPostgres.start({ dataDirectory: directory });
  let server = await start();
  // Ends the server when the test run is interrupted.
  const abandon = () => killServer(directory);
  process.once('exit', abandon);
  return {
    url: server.url,
    stop: () => server.close(),
    start: async () => {
      server = await start();
    },
    [Symbol.asyncDispose]: async () => {
      process.off('exit', abandon);
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function createDatabase(server: string): Promise<TestPostgres> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  // `URL` refuses the URL of a socket, which has no host.
  const urlOf = (database: string) => server.replace('/postgres?', `/${database}?`);
  // Nobody may be connected to a database that is copied.
  const client = new pg.Client({ connectionString: urlOf('template1') });
  await client.connect();
  try {
    await client.query(`create database ${name} template postgres`);
    // Nothing here outlives the test file.
    await client.query(`alter database ${name} set synchronous_commit = off`);
  } finally {
    await client.end();
  }
  const refuse = async () => {
    throw new Error('A server that test files share cannot be stopped.');
  };
  return { url: urlOf(name), stop: refuse, start: refuse, [Symbol.asyncDispose]: async () => {} };
}

function killServer(directory: string): void {
  try {
    const pidFile = readFileSync(join(directory, 'postgres', 'postmaster.pid'), 'utf8');
    process.kill(Number.parseInt(pidFile, 10), 'SIGQUIT');
  } catch {
    // The server has already ended.
  }
  rmSync(directory, { recursive: true, force: true });
}
