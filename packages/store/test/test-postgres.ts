import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres } from '../src/embedded/embedded-postgres.ts';

/** A real PostgreSQL server in a directory of its own, for the tests of one file. */
export interface TestPostgres extends AsyncDisposable {
  readonly url: string;
  /** Stops the server; its data and its URL stay as they are. */
  stop(): Promise<void>;
  /** Starts it again. */
  start(): Promise<void>;
}

/** Starts one; disposing of it stops the server and removes its files. */
export async function startTestPostgres(): Promise<TestPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-store-'));
  const start = () => EmbeddedPostgres.start({ dataDirectory: directory });
  let server = await start();
  // A test run that ends in the middle leaves no server behind.
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

function killServer(directory: string): void {
  try {
    const pidFile = readFileSync(join(directory, 'postgres', 'postmaster.pid'), 'utf8');
    process.kill(Number.parseInt(pidFile, 10), 'SIGQUIT');
  } catch {
    // It has ended already.
  }
  rmSync(directory, { recursive: true, force: true });
}
