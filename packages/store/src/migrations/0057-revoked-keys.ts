import { type Kysely, sql } from 'kysely';

/** Indexes by which the revoked API keys of a tenant, and those that were revoked long ago, are found. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create index api_keys_tenant_revoked on api_keys (tenant_id, revoked_at, key_id) where revoked_at is not null;
       create index api_keys_revoked on api_keys (revoked_at) where revoked_at is not null`,
    )
    .execute(db);
}
