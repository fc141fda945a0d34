import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, loadConfig } from '@svc/config';
import { MasterKeyring, type RotationProgress, rotateMasterKey } from '@svc/control-plane';
import { FileLockedError, lockFile } from '@svc/service-kit/process';
import { EmbeddedPostgres, openStore } from '@svc/store';
import { CliError } from '../output/cli-error.ts';
import { servicePlaces } from './places.ts';

/** Rotates the master key of the configured service, running or not, and says how far it is. */
export async function rotateStoredMasterKey(): Promise<void> {
  const config = loadConfig();
  await using cleanUp = new AsyncDisposableStack();
  const url = await databaseUrl(config, cleanUp);
  const store = await openStore({
    url,
    // Nothing is placed from here.
    placement: { unreachableMs: 0, sandboxesPerTenant: 0 },
  });
  cleanUp.defer(() => store.close());
  const { keyId, rewrapped, changed } = await rotateMasterKey(
    store,
    await MasterKeyring.open(config),
    showProgress,
  );
  if (!changed) {
    throw new CliError('key_in_use', `SVC_MASTER_KEY (${keyId}) is in use already`, {
      next: 'set SVC_MASTER_KEY to a new key and SVC_MASTER_KEY_PREVIOUS to the one so far',
    });
  }
  console.log(`master key ${keyId} is in use; ${rewrapped} bundles were wrapped with it`);
}

function showProgress({ done, total }: RotationProgress): void {
  console.error(`svc: ${done} of ${total} bundles`);
}

/** The configured server; else the embedded one, which is started for this when no service runs. */
async function databaseUrl(config: Config, cleanUp: AsyncDisposableStack): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl.reveal();
  // Otherwise a mistyped directory would get a database of its own.
  await access(join(config.dataDir, 'postgres')).catch((cause: unknown) => {
    throw noService(config.dataDir, cause);
  });
  const running = await EmbeddedPostgres.runningUrl(config.dataDir);
  const places = servicePlaces(config.dataDir);
  const lock = await lockFile(places.lock).catch((error: unknown) => {
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
  return new CliError('no_database', `there is no database in ${dataDir}`, {
    next: 'set SVC_DATA_DIR to the data directory of a service, or SVC_DATABASE_URL',
    cause,
  });
}
