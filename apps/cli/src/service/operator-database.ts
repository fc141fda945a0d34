import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { FileLockedError, lockFile } from '@svc/service-kit/process';
import { EmbeddedPostgres, UnfinishedRestoreError } from '@svc/store';
import { CliError } from '../output/errors.ts';
import { servicePaths } from './paths.ts';

/**
 * The URL of the configured server, or of the embedded one, which is started if no service is running and ends with
 * `cleanUp`.
 * @throws CliError `no_database`, `restore_unfinished`
 */
export async function databaseUrl(config: Config, cleanUp: AsyncDisposableStack): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl.reveal();
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
    return running;
  }
  cleanUp.defer(() => lock.release());
  const server = await EmbeddedPostgres.start({ dataDirectory: config.dataDir }).catch(
    explainDatabaseError,
  );
  cleanUp.defer(() => server.close());
  return server.url;
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
