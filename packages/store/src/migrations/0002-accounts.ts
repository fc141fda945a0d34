import { type Kysely, sql } from 'kysely';

/** Names of API keys, signing keys of account tokens, secret bundles, and request budgets. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [API_KEYS, SIGNING_KEYS, SECRETS, BUDGETS]) {
    await sql.raw(statement).execute(db);
  }
}

const API_KEYS = `
  alter table api_keys add column name text, add column last_used_at timestamptz(3);
  create index audit_records_page on audit_records (tenant_id, id);`;

/** Shared by all control planes, so that each accepts the tokens of the others. */
const SIGNING_KEYS = `
  create table signing_keys (
    kid text primary key,
    -- The private key, sealed by one that is not in the database.
    sealed bytea not null,
    created_at timestamptz(3) not null default now()
  );`;

const SECRETS = `
  create table master_keys (
    key_id text primary key,
    -- New data keys are wrapped by the current one only.
    current boolean not null,
    created_at timestamptz(3) not null default now()
  );
  create unique index master_keys_current on master_keys (current) where current;
  create table secret_bundles (
    tenant_id text not null references tenants,
    name text not null,
    key_names text[] not null,
    sealed_values bytea not null,
    wrapped_key bytea not null,
    master_key_id text not null references master_keys,
    version integer not null default 1,
    created_at timestamptz(3) not null default now(),
    last_rotated_at timestamptz(3),
    primary key (tenant_id, name)
  );
  create index secret_bundles_master_key on secret_bundles (master_key_id, tenant_id, name);`;

const BUDGETS = `
  create table request_budgets (
    budget text not null,
    tenant_id text not null references tenants,
    used integer not null,
    window_ends_at timestamptz(3) not null,
    primary key (budget, tenant_id)
  );`;
