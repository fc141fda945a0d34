import type { NewIndex } from './schema-migration.ts';

/** Indexes by which the revoked API keys of a tenant, and those that were revoked long ago, are found. */
export const indexes: readonly NewIndex[] = [
  {
    name: 'api_keys_tenant_revoked',
    on: 'api_keys (tenant_id, revoked_at, key_id) where revoked_at is not null',
  },
  { name: 'api_keys_revoked', on: 'api_keys (revoked_at) where revoked_at is not null' },
];
