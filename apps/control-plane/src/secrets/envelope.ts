import { randomBytes } from 'node:crypto';
import type { SealedBundle, WrappedKeyRow } from '@svc/store';
import { seal, unseal } from '../crypto/seal.ts';
import type { MasterKey } from './master-keyring.ts';

const DATA_KEY_BYTES = 32;

/** Which bundle sealed bytes belong to; bytes moved to another one cannot be opened there. */
export interface BundleId {
  readonly tenantId: string;
  readonly name: string;
}

/** Seals the values of a bundle under a data key of its own, wrapped by the master key. */
export function sealBundle(
  id: BundleId,
  values: Readonly<Record<string, string>>,
  masterKey: MasterKey,
): SealedBundle {
  const dataKey = randomBytes(DATA_KEY_BYTES);
  const plain = Buffer.from(JSON.stringify(values));
  try {
    return {
      keyNames: Object.keys(values).sort(),
      sealedValues: seal(dataKey, contextOf('values', id), plain),
      wrappedKey: seal(masterKey.bytes, wrapContext(id, masterKey.id), dataKey),
      masterKeyId: masterKey.id,
    };
  } finally {
    dataKey.fill(0);
    plain.fill(0);
  }
}

/** The values of a stored bundle. @throws Error when anything of it was changed or belongs to another */
export function openBundle(
  row: WrappedKeyRow & { readonly sealed_values: Buffer },
  masterKey: MasterKey,
): Record<string, string> {
  const id = { tenantId: row.tenant_id, name: row.name };
  const dataKey = unwrap(row, masterKey);
  try {
    return JSON.parse(unseal(dataKey, contextOf('values', id), row.sealed_values).toString());
  } finally {
    dataKey.fill(0);
  }
}

/** The wrapped data key of a stored bundle, wrapped by another master key. */
export function rewrapBundle(row: WrappedKeyRow, from: MasterKey, to: MasterKey): Buffer {
  const id = { tenantId: row.tenant_id, name: row.name };
  const dataKey = unwrap(row, from);
  try {
    return seal(to.bytes, wrapContext(id, to.id), dataKey);
  } finally {
    dataKey.fill(0);
  }
}

function unwrap(row: WrappedKeyRow, masterKey: MasterKey): Buffer {
  const id = { tenantId: row.tenant_id, name: row.name };
  return unseal(masterKey.bytes, wrapContext(id, masterKey.id), row.wrapped_key);
}

function wrapContext(id: BundleId, masterKeyId: string): string {
  return contextOf('data key', id, masterKeyId);
}

/** JSON keeps the parts apart whatever they hold. */
function contextOf(purpose: string, { tenantId, name }: BundleId, ...more: string[]): string {
  return JSON.stringify(['svc secret bundle v1', purpose, tenantId, name, ...more]);
}
