/** Public identifiers: a type prefix and the 32 hex digits of a UUIDv7, so that they sort by creation. */

import { Type } from 'typebox';

export const ID_PREFIXES = {
  user: 'usr_',
  key: 'key_',
  sandbox: 'vm_',
  transaction: 'txn_',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

const UNIQUE_PART = '[0-9a-f]{32}';
const PATTERNS: Record<IdKind, RegExp> = {
  user: new RegExp(`^${ID_PREFIXES.user}${UNIQUE_PART}$`),
  key: new RegExp(`^${ID_PREFIXES.key}${UNIQUE_PART}$`),
  sandbox: new RegExp(`^${ID_PREFIXES.sandbox}${UNIQUE_PART}$`),
  transaction: new RegExp(`^${ID_PREFIXES.transaction}${UNIQUE_PART}$`),
};

/** Makes an identifier from a UUID (version 7 keeps ids sortable), for example `makeId('sandbox', uuidv7())`. */
export function makeId(kind: IdKind, uuid: string): string {
  return ID_PREFIXES[kind] + uuid.replaceAll('-', '').toLowerCase();
}

/** The UUID that an identifier was made from, in its canonical form. @throws Error for text that is no identifier */
export function uuidOf(id: string): string {
  const digits = /_([0-9a-f]{32})$/.exec(id)?.[1];
  if (digits === undefined) throw new Error('the text is no identifier');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Whether `value` has the form of an identifier of this kind. The identifier need not exist. */
export function isId(kind: IdKind, value: string): boolean {
  return PATTERNS[kind].test(value);
}

export const SandboxId = Type.String({
  description: 'Sandbox identifier.',
  examples: ['vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b'],
});
export const TenantId = Type.String({
  description: 'Account identifier; an account is a tenant.',
  examples: ['usr_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b'],
});
export const KeyId = Type.String({
  description: 'API key identifier.',
  examples: ['key_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b'],
});
