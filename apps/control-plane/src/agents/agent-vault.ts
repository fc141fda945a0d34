import { type AgentSecrets, ServiceError } from '@svc/contract';
import { Slots } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import { openAgentSecrets, sealAgentSecrets } from '../secrets/envelope.ts';
import type { MasterKeyring } from '../secrets/master-keyring.ts';
import type { SecretBundles } from '../secrets/secret-bundles.ts';
import { modelInUse } from '../sessions/llm.ts';
import type { DefaultModels } from './default-models.ts';
import { agentSecretsOf, type SessionSecrets, type StoredSecrets } from './stored-secrets.ts';

export interface AgentVaultParts {
  readonly store: Pick<
    Store,
    'agentSecrets' | 'masterKeys' | 'sandboxes' | 'secretBundles' | 'sessions'
  >;
  readonly keyring: MasterKeyring;
  readonly bundles: Pick<SecretBundles, 'reveal'>;
  readonly models: DefaultModels;
}

/** A write starts over when a master key or a bundle changes during it. Both change rarely. */
const WRITE_ATTEMPTS = 5;
const COPIES_AT_ONCE = 8;

/**
 * Stores the secrets of the agents in live sandboxes, encrypted, and serves them to workers. Bundles are read
 * each time, so that a rotation takes effect. The last values of a deleted bundle stay in use.
 */
export class AgentVault {
  readonly #parts: AgentVaultParts;

  constructor(parts: AgentVaultParts) {
    this.#parts = parts;
  }

  /** Stores the secrets of a sandbox that was just placed. @throws ServiceError `sandbox_deleted` */
  async keep(vmId: string, secrets: StoredSecrets): Promise<void> {
    const isKept =
      secrets.kind === 'session'
        ? await this.#renew(vmId, secrets)
        : await this.#put(vmId, secrets);
    if (!isKept) throw new ServiceError('sandbox_deleted');
  }

  /**
   * The current secrets of a sandbox, for the worker that holds it. The model of a session is on record from then on.
   * @throws ServiceError `sandbox_not_found` for any other worker, and when the sandbox has no agent
   */
  async open(workerId: string, vmId: string): Promise<AgentSecrets> {
    const { sandboxes } = this.#parts.store;
    const isHeld = !vmId.includes('\0') && (await sandboxes.isHeldBy(workerId, vmId));
    const stored = isHeld ? await this.#find(vmId) : undefined;
    if (stored === undefined) throw new ServiceError('sandbox_not_found');
    if (stored.kind === 'one_shot') return agentSecretsOf(stored);
    return this.#withModel(vmId, agentSecretsOf(await this.#current(stored)));
  }

  /** Copies the current values of a bundle for every running session that uses it, so that they outlast the bundle. */
  async keepValues(tenantId: string, bundle: string): Promise<void> {
    const limit = new Slots(COPIES_AT_ONCE);
    const vmIds = await this.#parts.store.sessions.using(tenantId, bundle);
    await Promise.all(vmIds.map((vmId) => limit.run(() => this.#refresh(vmId))));
  }

  /** Does nothing for an ended sandbox. */
  async #refresh(vmId: string): Promise<void> {
    const stored = await this.#find(vmId);
    if (stored?.kind === 'session') await this.#renew(vmId, stored);
  }

  /** The secrets of a session with the model that it uses. */
  async #withModel(vmId: string, { llm, ...secrets }: AgentSecrets): Promise<AgentSecrets> {
    const { store, models } = this.#parts;
    const session = await store.sessions.modelIn(vmId);
    if (session === undefined) throw new ServiceError('sandbox_not_found');
    const inUse = modelInUse(session, llm, models);
    if (inUse.model !== session.model) await store.sessions.noteModel(session, inUse.model);
    return { ...secrets, llm: { ...llm, ...inUse } };
  }

  /**
   * Writes until no bundle has changed since it was read. A deletion looks for users before it removes its bundle, so
   * one of the two notices the other. False when the sandbox has ended.
   */
  async #renew(vmId: string, secrets: SessionSecrets): Promise<boolean> {
    const names = secrets.bundles.map(([name]) => name);
    const { secretBundles } = this.#parts.store;
    for (let attempt = 0; attempt < WRITE_ATTEMPTS; attempt += 1) {
      const before = await secretBundles.versions(secrets.tenantId, names);
      if (!(await this.#put(vmId, await this.#current(secrets)))) return false;
      const after = await secretBundles.versions(secrets.tenantId, names);
      if (names.every((name) => before.get(name) === after.get(name))) return true;
    }
    throw new Error('Secret bundles change faster than a session can copy them.');
  }

  async #current(secrets: SessionSecrets): Promise<SessionSecrets> {
    const names = secrets.bundles.map(([name]) => name);
    const revealed = await this.#parts.bundles.reveal(secrets.tenantId, names);
    const bundles = secrets.bundles.map(([name, last]) => {
      const values = revealed.get(name);
      if (values === undefined) return [name, last] as const;
      const plain = Object.entries(values).map(([key, secret]) => [key, secret.reveal()]);
      return [name, Object.fromEntries(plain) as Record<string, string>] as const;
    });
    return { ...secrets, bundles };
  }

  async #find(vmId: string): Promise<StoredSecrets | undefined> {
    const row = await this.#parts.store.agentSecrets.find(vmId);
    if (row === undefined) return undefined;
    const masterKey = await this.#parts.keyring.require(row.master_key_id);
    return openAgentSecrets(row, masterKey) as StoredSecrets;
  }

  /** False when the sandbox has ended. */
  async #put(vmId: string, secrets: StoredSecrets): Promise<boolean> {
    const { store, keyring } = this.#parts;
    const id = { vmId, tenantId: secrets.tenantId };
    for (let attempt = 0; attempt < WRITE_ATTEMPTS; attempt += 1) {
      const current = await store.masterKeys.current();
      if (current === undefined) throw new Error('The ledger names no current master key.');
      const sealed = sealAgentSecrets(id, secrets, await keyring.require(current));
      const outcome = await store.agentSecrets.put({ ...id, ...sealed });
      if (outcome !== 'master_key_changed') return outcome;
    }
    throw new Error('The master key changes faster than secrets can be written.');
  }
}
