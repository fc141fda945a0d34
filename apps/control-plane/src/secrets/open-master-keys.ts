import { ConfigError } from '@svc/config';
import type { Store } from '@svc/store';
import { MasterKeyring, type MasterKeySettings } from './master-keyring.ts';

/**
 * Opens the master keys, including the one that wraps the ledger's secrets. For a ledger without one, a key is
 * created unless the operator provides one.
 * @throws ConfigError when the ledger's key is missing, since the secrets could not be read
 */
export async function openMasterKeys(
  settings: MasterKeySettings,
  store: Store['masterKeys'],
): Promise<MasterKeyring> {
  const ring = await MasterKeyring.open(settings);
  let current = await store.current();
  if (current === undefined) {
    const first = ring.newest ?? (await ring.create());
    current = await store.adopt(first.id);
  }
  if (ring.find(current) === undefined) throw missingKey(current, ring);
  return ring;
}

function missingKey(id: string, ring: MasterKeyring): ConfigError {
  return new ConfigError([
    `the stored secrets are wrapped with master key ${id}, which is neither SVC_MASTER_KEY, nor SVC_MASTER_KEY_PREVIOUS, nor in ${ring.file}; control planes of one database need the same key`,
  ]);
}
