import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, loadConfig } from '@svc/config';
import { MasterKeyring, type RotationProgress, rotateMasterKey } from '@svc/control-plane';
import { FileLockedError, lockFile } from '@svc/service-kit/process';
import { EmbeddedPostgres, openStore } from '@svc/store';
import { CliError } from '../output/errors.ts';
import { servicePaths } from './paths.ts';

/**
 * Rotates the master key of the configured service, whether or not it is running, and prints the progress.
 * @throws CliError `key_in_use`, `no_database`
 */
export async function rotateStoredMasterKey(): Promise<void> {
  const config = loadConfig();
  await using cleanUp = new AsyncDisposableStack();
  const url = await databaseUrl(config, cleanUp);
  const store = await openStore({
    url,
    // This process places no sandboxes.
    placement: { unreachableMs: 0, sandboxesPerTenant: 0 },
  });
  cleanUp.defer(() => store.close());
  const { keyId, rewrapped, changed } = await rotateMasterKey(
    store,
    await MasterKeyring.open(config),
    showProgress,
  );
  if (!changed) {
    throw new CliError('key_in_use', `SVC_MASTER_KEY (${keyId}) is already in use`, {
      next: 'set SVC_MASTER_KEY to a new key and SVC_MASTER_KEY_PREVIOUS to the current one',
    });
  }
  console.log(`master key ${keyId} is in use; ${rewrapped} bundles were rewrapped with it`);
}

function showProgress({ done, total }: RotationProgress): void {
  console.error(`svc: ${done} of ${total} bundles`);
}

/** The URL of the configured server, or of the embedded one, which is started if no service is running. */
async function databaseUrl(config: Config, cleanUp: AsyncDisposableStack): Promise<string> {
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
  const server = await EmbeddedPostgres.start({ dataDirectory: config.dataDir });
  cleanUp.defer(() => server.close());
  return server.url;
}

function noService(dataDir: string, cause?: unknown): CliError {
  return new CliError('no_database', `no database found in ${dataDir}`, {
    next: 'set SVC_DATA_DIR to the data directory of a service, or SVC_DATABASE_URL',
    cause,
  });
}
