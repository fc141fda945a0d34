import type { Store } from '@svc/store';
import { rewrapAgentSecrets, rewrapBundle, rewrapTenantKey } from './envelope.ts';
import type { MasterKey, MasterKeyring } from './master-keyring.ts';

const BATCH = 50;

/** Progress of a rotation. */
export interface RotationProgress {
  readonly done: number;
  readonly total: number;
}

/** Result of a rotation. */
export interface Rotation {
  /** Id of the key that now wraps everything. */
  readonly keyId: string;
  readonly rewrapped: number;
  /** False when the configured key was in use already and nothing remained to be done. */
  readonly changed: boolean;
}

type SecretStores = Pick<Store, 'secretBundles' | 'agentSecrets' | 'tenantKeys'>;

/**
 * Makes another master key the current one and wraps every data key with it. The encrypted values do not change.
 * The next rotation completes an interrupted one. Control planes keep serving in the meantime.
 */
export async function rotateMasterKey(
  store: SecretStores & Pick<Store, 'masterKeys'>,
  ring: MasterKeyring,
  onProgress: (progress: RotationProgress) => void = () => undefined,
): Promise<Rotation> {
  const before = await store.masterKeys.current();
  const target = await chooseKey(store, ring, before);
  // From here on no data key is wrapped with the old key any more, so the remainder only shrinks.
  if (target.id !== before) await store.masterKeys.makeCurrent(target.id);
  const others = await countOthers(store, target.id);
  let done = 0;
  onProgress({ done, total: others });
  for (;;) {
    const count = await rewrapSome(store, ring, target);
    if (count === 0) break;
    done += count;
    onProgress({ done, total: Math.max(others, done) });
  }
  await ring.keepOnly(target.id);
  return { keyId: target.id, rewrapped: done, changed: target.id !== before || done > 0 };
}

async function countOthers(store: SecretStores, masterKeyId: string): Promise<number> {
  const bundles = await store.secretBundles.countWrapped(masterKeyId);
  const agents = await store.agentSecrets.countWrapped(masterKeyId);
  const tenants = await store.tenantKeys.countWrapped(masterKeyId);
  return bundles.others + agents.others + tenants.others;
}

/** Wraps a batch of data keys of one kind. Returns their number, 0 at the end. */
async function rewrapSome(
  store: SecretStores,
  ring: MasterKeyring,
  target: MasterKey,
): Promise<number> {
  const bundles = await store.secretBundles.rewrap(target.id, BATCH, (row) =>
    rewrapBundle(row, oldKeyOf(row, `${row.tenant_id}/${row.name}`, ring), target),
  );
  if (bundles > 0) return bundles;
  const agents = await store.agentSecrets.rewrap(target.id, BATCH, (row) =>
    rewrapAgentSecrets(row, oldKeyOf(row, row.vm_id, ring), target),
  );
  if (agents > 0) return agents;
  return store.tenantKeys.rewrap(target.id, BATCH, (row) =>
    rewrapTenantKey(row, oldKeyOf(row, row.tenant_id, ring), target),
  );
}

async function chooseKey(
  store: SecretStores,
  ring: MasterKeyring,
  current: string | undefined,
): Promise<MasterKey> {
  const { newest } = ring;
  if (newest === undefined) return ring.create();
  if (ring.isConfigured || newest.id !== current) return newest;
  const others = await countOthers(store, newest.id);
  return others > 0 ? newest : ring.create();
}

function oldKeyOf(
  row: { readonly master_key_id: string },
  owner: string,
  ring: MasterKeyring,
): MasterKey {
  const key = ring.find(row.master_key_id);
  if (key !== undefined) return key;
  throw new Error(
    `The secrets of ${owner} are wrapped with master key ${row.master_key_id}, which is missing; set SVC_MASTER_KEY_PREVIOUS to it.`,
  );
}
