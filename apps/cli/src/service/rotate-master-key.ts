import { type Config, loadServiceConfig } from '@svc/config';
import { MasterKeyring, type RotationProgress, rotateMasterKey } from '@svc/control-plane';
import { openStore } from '@svc/store';
import { CliError } from '../output/errors.ts';
import { withDatabase } from './operator-database.ts';

/**
 * Rotates the master key of the configured service, whether or not it is running, and prints the progress.
 * @throws CliError `key_in_use`, `no_database`
 */
export async function rotateStoredMasterKey(): Promise<void> {
  const config = loadServiceConfig();
  await withDatabase(config, (url) => rotateIn(url, config));
}

async function rotateIn(url: string, config: Config): Promise<void> {
  await using cleanUp = new AsyncDisposableStack();
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
    throw new CliError('key_in_use', `the newest master key (${keyId}) is already in use`, {
      next: 'write a new key on the first line of SVC_MASTER_KEY_FILE, or set SVC_MASTER_KEY to a new key and SVC_MASTER_KEY_PREVIOUS to the current one',
    });
  }
  console.log(`master key ${keyId} is in use; ${rewrapped} bundles were rewrapped with it`);
}

function showProgress({ done, total }: RotationProgress): void {
  console.error(`svc: ${done} of ${total} bundles`);
}
