/** API keys, as listed and as returned on creation. */

import { type Static, Type } from 'typebox';
import { KeyId } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { OPTIONAL_BODY_KEYWORD, Timestamp } from '../schema.ts';

const PlanTier = Type.String({ examples: ['free'] });
const Prefix = Type.String({ description: 'Leading characters of the key.' });
/** Printable characters only, so that a listing shows the whole name. */
const KeyName = Type.String({
  minLength: 1,
  maxLength: LIMITS.apiKeyNameChars,
  pattern: '^[^\\p{C}]+$',
  description: 'What the key is for, in the words of whoever made it.',
  examples: ['ci'],
});

export const ApiKeyRecord = Type.Object(
  {
    key_id: KeyId,
    name: Type.Optional(KeyName),
    prefix: Prefix,
    plan_tier: PlanTier,
    revoked: Type.Boolean(),
    created_at: Timestamp,
    last_used_at: Type.Optional({
      ...Timestamp,
      description: 'Last use, up to a minute late; absent before the first.',
    }),
  },
  { title: 'ApiKey' },
);
export type ApiKeyRecord = Static<typeof ApiKeyRecord>;

/** The optional body of both routes that create keys. */
export const CreateApiKeyRequest = Type.Object(
  { name: Type.Optional(KeyName) },
  { [OPTIONAL_BODY_KEYWORD]: true },
);
export type CreateApiKeyRequest = Static<typeof CreateApiKeyRequest>;

/** Accepts any text: an id that is not of the caller's keys is 404, even if it is malformed. */
export const ApiKeyParams = Type.Object({ key_id: KeyId });
/** The same for routes that call it `id`. */
export const ApiKeyIdParams = Type.Object({ id: KeyId });

/** A new key of the tenant routes: `svc_` and 64 hex digits. */
export const tenantKeyFields = {
  key_id: KeyId,
  name: Type.Optional(KeyName),
  prefix: Prefix,
  api_key: Type.String({ description: 'The full secret. Returned here and never again.' }),
  plan_tier: PlanTier,
  created_at: Timestamp,
};
export const CreateTenantKeyResponse = Type.Object(tenantKeyFields, { title: 'NewTenantKey' });
export type CreateTenantKeyResponse = Static<typeof CreateTenantKeyResponse>;

export const ListTenantKeysResponse = Type.Object({ keys: Type.Array(ApiKeyRecord) });
export type ListTenantKeysResponse = Static<typeof ListTenantKeysResponse>;

/** A new key of `/v1/api-keys`: `svc_live_` and 43 base62 characters. */
export const CreateApiKeyResponse = Type.Object(
  {
    key_id: KeyId,
    key: Type.String({ description: 'The full secret. Returned here and never again.' }),
    prefix: Prefix,
    name: Type.Optional(KeyName),
  },
  { title: 'NewApiKey' },
);
export type CreateApiKeyResponse = Static<typeof CreateApiKeyResponse>;

export const ListApiKeysResponse = Type.Object({ api_keys: Type.Array(ApiKeyRecord) });
export type ListApiKeysResponse = Static<typeof ListApiKeysResponse>;

export const RevokeApiKeyResponse = Type.Object({ status: Type.Literal('revoked') });
export type RevokeApiKeyResponse = Static<typeof RevokeApiKeyResponse>;

/** The forms of the two kinds of key. */
export const LIVE_KEY_PATTERN = '^svc_live_[0-9A-Za-z]{43}$';
export const TENANT_KEY_PATTERN = '^svc_[0-9a-f]{64}$';
const KEY = new RegExp(`${LIVE_KEY_PATTERN}|${TENANT_KEY_PATTERN}`);

/** Whether a credential has the form of an API key of either kind. */
export function looksLikeApiKey(credential: string): boolean {
  return KEY.test(credential);
}

/** The part of a key that may be displayed. */
export function apiKeyPrefix(key: string): string {
  return key.slice(0, key.startsWith('svc_live_') ? 16 : 12);
}
