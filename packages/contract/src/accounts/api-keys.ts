/** API keys as listings show them, and as the creating call returns them. */

import { type Static, Type } from 'typebox';
import { KeyId } from '../ids.ts';
import { Timestamp } from '../schema.ts';

const PlanTier = Type.String({ examples: ['free'] });
const Prefix = Type.String({ description: 'Leading characters of the key.' });

export const ApiKeyRecord = Type.Object(
  {
    key_id: KeyId,
    prefix: Prefix,
    plan_tier: PlanTier,
    revoked: Type.Boolean(),
    created_at: Timestamp,
  },
  { title: 'ApiKey' },
);
export type ApiKeyRecord = Static<typeof ApiKeyRecord>;

/** A new key of the tenant routes: `svc_` and 64 hex digits. */
export const tenantKeyFields = {
  key_id: KeyId,
  prefix: Prefix,
  api_key: Type.String({ description: 'The full secret. Returned here and never again.' }),
  plan_tier: PlanTier,
  created_at: Timestamp,
};
export const CreateTenantKeyResponse = Type.Object(tenantKeyFields);
export type CreateTenantKeyResponse = Static<typeof CreateTenantKeyResponse>;

export const ListTenantKeysResponse = Type.Object({ keys: Type.Array(ApiKeyRecord) });
export type ListTenantKeysResponse = Static<typeof ListTenantKeysResponse>;

/** A new key of `/v1/api-keys`: `svc_live_` and 43 base62 characters. */
export const CreateApiKeyResponse = Type.Object({
  key_id: KeyId,
  key: Type.String({ description: 'The full secret. Returned here and never again.' }),
  prefix: Prefix,
});
export type CreateApiKeyResponse = Static<typeof CreateApiKeyResponse>;

export const ListApiKeysResponse = Type.Object({ api_keys: Type.Array(ApiKeyRecord) });
export type ListApiKeysResponse = Static<typeof ListApiKeysResponse>;

export const RevokeApiKeyResponse = Type.Object({ status: Type.Literal('revoked') });
export type RevokeApiKeyResponse = Static<typeof RevokeApiKeyResponse>;

/** Forms of the two kinds of key. */
export const LIVE_KEY_PATTERN = '^svc_live_[0-9A-Za-z]{43}$';
export const TENANT_KEY_PATTERN = '^svc_[0-9a-f]{64}$';
const KEY = new RegExp(`${LIVE_KEY_PATTERN}|${TENANT_KEY_PATTERN}`);

/** Whether a credential has the form of an API key, of either kind. */
export function looksLikeApiKey(credential: string): boolean {
  return KEY.test(credential);
}

/** The part of a key that may be shown. */
export function apiKeyPrefix(key: string): string {
  return key.slice(0, key.startsWith('svc_live_') ? 16 : 12);
}
