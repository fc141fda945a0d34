import { randomBytes } from 'node:crypto';
import type { AgentSecretsRow, SealedBundle, TenantKeyRow, WrappedKeyRow } from '@svc/store';
import { seal, unseal } from '../crypto/seal.ts';
import type { MasterKey } from './master-keyring.ts';

const DATA_KEY_BYTES = 32;

/** The bundle that encrypted bytes are bound to. Under another bundle they cannot be decrypted. */
export interface BundleId {
  readonly tenantId: string;
  readonly name: string;
}

/** The sandbox that the encrypted secrets of an agent are bound to. */
export interface AgentSecretsId {
  readonly tenantId: string;
  readonly vmId: string;
}

/** Stored values and their wrapped data key. */
export type Sealed = Omit<SealedBundle, 'keyNames'>;

interface StoredEnvelope extends WrappedKey {
  readonly sealed_values: Buffer;
}

interface WrappedKey {
  readonly wrapped_key: Buffer;
}

/** Kind and owner of encrypted bytes, as authenticated data. */
type Scope = readonly [kind: string, tenantId: string, name: string];

/** Encrypts the values of a bundle with a new data key, which the master key wraps. */
export function sealBundle(
  id: BundleId,
  values: Readonly<Record<string, string>>,
  masterKey: MasterKey,
): SealedBundle {
  const keyNames = Object.keys(values).sort();
  return { keyNames, ...sealValue(bundleScope(id), values, masterKey) };
}

/** Decrypts a stored bundle. @throws Error when a part was changed or belongs to another bundle */
export function openBundle(
  row: WrappedKeyRow & StoredEnvelope,
  masterKey: MasterKey,
): Record<string, string> {
  const scope = bundleScope({ tenantId: row.tenant_id, name: row.name });
  return openValue(scope, row, masterKey) as Record<string, string>;
}

/** Wraps the data key of a stored bundle with another master key. */
export function rewrapBundle(row: WrappedKeyRow, from: MasterKey, to: MasterKey): Buffer {
  return rewrap(bundleScope({ tenantId: row.tenant_id, name: row.name }), row, from, to);
}

/** Encrypts the secrets of an agent, as {@link sealBundle} does for a bundle. */
export function sealAgentSecrets(id: AgentSecretsId, value: object, masterKey: MasterKey): Sealed {
  return sealValue(agentScope(id), value, masterKey);
}

/** Decrypts the result of {@link sealAgentSecrets}. @throws Error when a part was changed or belongs to another sandbox */
export function openAgentSecrets(row: AgentSecretsRow, masterKey: MasterKey): unknown {
  return openValue(agentScope({ tenantId: row.tenant_id, vmId: row.vm_id }), row, masterKey);
}

/** As {@link rewrapBundle}. */
export function rewrapAgentSecrets(row: AgentSecretsRow, from: MasterKey, to: MasterKey): Buffer {
  return rewrap(agentScope({ tenantId: row.tenant_id, vmId: row.vm_id }), row, from, to);
}

/** Makes a random key for a tenant and wraps it with the master key. */
export function makeTenantKey(tenantId: string, masterKey: MasterKey): Buffer {
  const key = randomBytes(DATA_KEY_BYTES);
  try {
    return wrap(tenantScope(tenantId), key, masterKey);
  } finally {
    key.fill(0);
  }
}

/** Unwraps the result of {@link makeTenantKey}. @throws Error when it was changed or belongs to another tenant */
export function openTenantKey(row: TenantKeyRow, masterKey: MasterKey): Buffer {
  return unwrap(tenantScope(row.tenant_id), row, masterKey);
}

/** As {@link rewrapBundle}. */
export function rewrapTenantKey(row: TenantKeyRow, from: MasterKey, to: MasterKey): Buffer {
  return rewrap(tenantScope(row.tenant_id), row, from, to);
}

function sealValue(scope: Scope, value: object, masterKey: MasterKey): Sealed {
  const dataKey = randomBytes(DATA_KEY_BYTES);
  const plain = Buffer.from(JSON.stringify(value));
  try {
    return {
      sealedValues: seal(dataKey, contextOf('values', scope), plain),
      wrappedKey: wrap(scope, dataKey, masterKey),
      masterKeyId: masterKey.id,
    };
  } finally {
    dataKey.fill(0);
    plain.fill(0);
  }
}

function openValue(scope: Scope, row: StoredEnvelope, masterKey: MasterKey): unknown {
  const dataKey = unwrap(scope, row, masterKey);
  try {
    return JSON.parse(unseal(dataKey, contextOf('values', scope), row.sealed_values).toString());
  } finally {
    dataKey.fill(0);
  }
}

function rewrap(scope: Scope, row: WrappedKey, from: MasterKey, to: MasterKey): Buffer {
  const dataKey = unwrap(scope, row, from);
  try {
    return wrap(scope, dataKey, to);
  } finally {
    dataKey.fill(0);
  }
}

function wrap(scope: Scope, key: Buffer, masterKey: MasterKey): Buffer {
  return seal(masterKey.bytes, contextOf('data key', scope, masterKey.id), key);
}

function unwrap(scope: Scope, row: WrappedKey, masterKey: MasterKey): Buffer {
  return unseal(masterKey.bytes, contextOf('data key', scope, masterKey.id), row.wrapped_key);
}

function bundleScope({ tenantId, name }: BundleId): Scope {
  return ['svc secret bundle v1', tenantId, name];
}

function agentScope({ tenantId, vmId }: AgentSecretsId): Scope {
  return ['svc agent secrets v1', tenantId, vmId];
}

function tenantScope(tenantId: string): Scope {
  return ['svc tenant key v1', tenantId, ''];
}

/** JSON separates the parts unambiguously, regardless of their content. */
function contextOf(purpose: string, [kind, ...owner]: Scope, ...more: string[]): string {
  return JSON.stringify([kind, purpose, ...owner, ...more]);
}
