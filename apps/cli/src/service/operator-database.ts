import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { untilAborted } from '@svc/service-kit/concurrency';
import { FileLockedError, lockFile } from '@svc/service-kit/process';
import { EmbeddedPostgres, UnfinishedRestoreError } from '@svc/store';
import { CliError } from '../output/errors.ts';
import { ignoreOutputErrors, withInterrupt } from '../process-lifetime.ts';
import { servicePaths } from './paths.ts';

/** What a command does with a database. The signal, if any, aborts when the command is interrupted. */
type DatabaseWork<T> = (url: string, signal?: AbortSignal) => Promise<T>;

/**
 * Runs `work` with the URL of the configured server, or of the embedded one. If no service is running, this starts the
 * server and ends it after `work`, or on an interrupt, which disconnects `work`.
 * @throws CliError `no_database`, `restore_unfinished`; DOMException `AbortError` when interrupted
 */
export async function withDatabase<T>(config: Config, work: DatabaseWork<T>): Promise<T> {
  if (config.databaseUrl !== undefined) return work(config.databaseUrl.reveal());
  // Otherwise, a mistyped directory would get a new database.
  await access(join(config.dataDir, 'postgres')).catch((cause: unknown) => {
    throw noService(config.dataDir, cause);
  });
  const running = await EmbeddedPostgres.runningUrl(config.dataDir);
  const lock = await lockFile(servicePaths(config.dataDir).lock).catch((error: unknown) => {
    if (error instanceof FileLockedError) return undefined;
    throw noService(config.dataDir, error);
  });
  if (lock === undefined) {
    if (running === undefined) throw noService(config.dataDir);
    return work(running);
  }
  await using cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => lock.release());
  return await withOwnServer(config.dataDir, work);
}

/** Nothing else ends the server that this starts, so the process must not end before. */
function withOwnServer<T>(dataDirectory: string, work: DatabaseWork<T>): Promise<T> {
  ignoreOutputErrors();
  return withInterrupt(async (signal) => {
    await using cleanUp = new AsyncDisposableStack();
    const server = await EmbeddedPostgres.start({ dataDirectory }).catch(explainDatabaseError);
    let working: Promise<T> | undefined;
    // After the end of its connections, and before the data directory is unlocked.
    cleanUp.defer(async () => void (await Promise.allSettled([working])));
    cleanUp.defer(() => server.close());
    signal.throwIfAborted();
    working = work(server.url, signal);
    return await untilAborted(working, signal);
  });
}

/** @throws CliError `restore_unfinished` instead of the error of the store; any other error */
export function explainDatabaseError(error: unknown): never {
  if (!(error instanceof UnfinishedRestoreError)) throw error;
  throw new CliError('restore_unfinished', error.message, {
    next: 'run `svc restore` again, which first puts back what was there',
    cause: error,
  });
}

function noService(dataDir: string, cause?: unknown): CliError {
  return new CliError('no_database', `no database found in ${dataDir}`, {
    next: 'set SVC_DATA_DIR to the data directory of a service, or SVC_DATABASE_URL',
    cause,
  });
}
