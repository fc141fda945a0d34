import {
  type BundleRecord,
  bundleProblem,
  type CreateBundleRequest,
  type CreateBundleResponse,
  type ErrorCode,
  isBundleName,
  LIMITS,
  LLM_BASE_URL_KEY,
  type RotateBundleResponse,
  ServiceError,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import { Secret } from '@svc/service-kit';
import type { NewBundle, Store } from '@svc/store';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../auth/caller.ts';
import { type BundleId, openBundle, sealBundle } from './envelope.ts';
import type { MasterKeyring } from './master-keyring.ts';

type Values = Readonly<Record<string, string>>;

export interface SecretBundleParts {
  readonly store: Pick<Store, 'masterKeys' | 'secretBundles'>;
  readonly keyring: MasterKeyring;
  readonly egress: EgressPolicy;
  readonly audit: AuditTrail;
}

/** A write starts over when the master key changes during it, a deletion when the bundle does. Both are rare. */
const WRITE_ATTEMPTS = 5;
const AUDITED_NAMES = 10;
/** After this time, no session that was running at a rotation is left. */
const NOTICE_SECONDS = LIMITS.sessionTtlSecondsCap;

/** Named sets of secret values. Only {@link SecretBundles.reveal} returns values. */
export class SecretBundles {
  readonly #parts: SecretBundleParts;

  constructor(parts: SecretBundleParts) {
    this.#parts = parts;
  }

  /** @throws ServiceError `bundle_exists`, `bundle_quota_exceeded`, and the errors of invalid values */
  async create(caller: Caller, request: CreateBundleRequest): Promise<CreateBundleResponse> {
    const { name, values } = request;
    await this.#check(values);
    const row = await this.#write({ tenantId: caller.tenantId, name }, values, (bundle) =>
      this.#parts.store.secretBundles.insert(bundle, LIMITS.secretBundlesPerTenant),
    );
    if (row === 'exists') throw new ServiceError('bundle_exists');
    if (row === 'quota_exceeded') throw new ServiceError('bundle_quota_exceeded');
    await this.#parts.audit.note(caller, 'secret_created', { name, ...auditedNames(row) });
    return { name, key_names: row.key_names, created_at: row.created_at.toISOString() };
  }

  /**
   * Replaces all values, and has the sessions that use them notified.
   * @throws ServiceError `bundle_not_found`, and the errors of invalid values
   */
  async rotate(caller: Caller, name: string, values: Values): Promise<RotateBundleResponse> {
    await this.#check(values);
    const row = isBundleName(name)
      ? await this.#write({ tenantId: caller.tenantId, name }, values, (bundle) =>
          this.#parts.store.secretBundles.replace(bundle, NOTICE_SECONDS),
        )
      : undefined;
    if (row === undefined) throw new ServiceError('bundle_not_found');
    await this.#parts.audit.note(caller, 'secret_rotated', { name, ...auditedNames(row) });
    const rotatedAt = row.last_rotated_at ?? row.created_at;
    return { name, key_names: row.key_names, last_rotated_at: rotatedAt.toISOString() };
  }

  async list(tenantId: string): Promise<BundleRecord[]> {
    return (await this.#parts.store.secretBundles.list(tenantId)).map(recordOf);
  }

  /** @throws ServiceError `bundle_not_found` */
  async describe(tenantId: string, name: string): Promise<BundleRecord> {
    const row = isBundleName(name)
      ? await this.#parts.store.secretBundles.describe(tenantId, name)
      : undefined;
    if (row === undefined) throw new ServiceError('bundle_not_found');
    return recordOf(row);
  }

  /** Deletes a bundle after `keepValues` has copied its values. @throws ServiceError `bundle_not_found` */
  async delete(caller: Caller, name: string, keepValues: () => Promise<void>): Promise<void> {
    const { store, audit } = this.#parts;
    const { tenantId } = caller;
    for (let attempt = 0; attempt < WRITE_ATTEMPTS; attempt += 1) {
      const versions = isBundleName(name)
        ? await store.secretBundles.versions(tenantId, [name])
        : undefined;
      const version = versions?.get(name);
      if (version === undefined) throw new ServiceError('bundle_not_found');
      await keepValues();
      if (!(await store.secretBundles.delete(tenantId, name, version))) continue;
      await audit.note(caller, 'secret_deleted', { name });
      return;
    }
    throw new Error('The bundle changes faster than it can be deleted.');
  }

  /** The values of bundles by bundle name. Unknown names are left out. */
  async reveal(
    tenantId: string,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, Readonly<Record<string, Secret>>>> {
    const rows = await this.#parts.store.secretBundles.find(tenantId, names.filter(isBundleName));
    const opened = rows.map(async (row) => {
      const values = openBundle(row, await this.#parts.keyring.require(row.master_key_id));
      const secrets = Object.entries(values).map(([key, value]) => [key, new Secret(value)]);
      return [row.name, Object.fromEntries(secrets) as Record<string, Secret>] as const;
    });
    return new Map(await Promise.all(opened));
  }

  async #check(values: Values): Promise<void> {
    const problem = bundleProblem(values);
    if (problem !== undefined) fail(problem.code, problem.path, problem.message);
    const baseUrl = Object.hasOwn(values, LLM_BASE_URL_KEY) ? values[LLM_BASE_URL_KEY] : undefined;
    if (baseUrl === undefined) return;
    const refusal = await this.#parts.egress.problemOf(baseUrl);
    if (refusal !== undefined) fail('llm_base_url_refused', `/values/${LLM_BASE_URL_KEY}`, refusal);
  }

  async #write<T>(
    id: BundleId,
    values: Values,
    write: (bundle: NewBundle) => Promise<T | 'master_key_changed'>,
  ): Promise<Exclude<T, 'master_key_changed'>> {
    const { store, keyring } = this.#parts;
    for (let attempt = 0; attempt < WRITE_ATTEMPTS; attempt += 1) {
      const current = await store.masterKeys.current();
      if (current === undefined) throw new Error('The ledger names no current master key.');
      const sealed = sealBundle(id, values, await keyring.require(current));
      const outcome = await write({ ...id, ...sealed });
      if (outcome !== 'master_key_changed') return outcome as Exclude<T, 'master_key_changed'>;
    }
    throw new Error('The master key changes faster than secrets can be written.');
  }
}

function recordOf(row: {
  name: string;
  key_names: string[];
  created_at: Date;
  last_rotated_at: Date | null;
}): BundleRecord {
  return {
    name: row.name,
    key_names: row.key_names,
    created_at: row.created_at.toISOString(),
    ...(row.last_rotated_at === null ? {} : { last_rotated_at: row.last_rotated_at.toISOString() }),
  };
}

/** Names of values for an audit record: some of them, since records are kept for long. */
function auditedNames({ key_names }: { readonly key_names: readonly string[] }) {
  const left = key_names.length - AUDITED_NAMES;
  return {
    key_names: key_names.slice(0, AUDITED_NAMES),
    ...(left > 0 ? { more_keys: left } : {}),
  };
}

function fail(code: ErrorCode, path: string, message: string): never {
  throw new ServiceError(code, undefined, { errors: [{ path, message }] });
}
