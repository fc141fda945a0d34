import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres } from '../src/embedded/embedded-postgres.ts';

/** A PostgreSQL server with an empty database, for the tests of one file. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  /** Stops the server. Its data and URL stay valid for `start`. */
  stop(): Promise<void>;
  /** Restarts a stopped server. */
  start(): Promise<void>;
}

/**
 * Starts a server in a temporary directory. Disposing of it stops the server and removes its files.
 * @param settings those that differ from the ones of the service
 */
export async function startTestServer(
  settings: Readonly<Record<string, string>> = {},
): Promise<TestServer> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-store-'));
  const start = () => EmbeddedPostgres.start({ dataDirectory: directory, settings });
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

function killServer(directory: string): void {
  try {
    const pidFile = readFileSync(join(directory, 'postgres', 'postmaster.pid'), 'utf8');
    process.kill(Number.parseInt(pidFile, 10), 'SIGQUIT');
  } catch {
    // The server has already ended.
  }
  rmSync(directory, { recursive: true, force: true });
}
