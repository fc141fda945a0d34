import { type Kysely, sql } from 'kysely';

/** Accounts, workers and sandboxes. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [ACCOUNTS, OTP, WORKERS, SANDBOXES, IDEMPOTENCY, AUDIT]) {
    await sql.raw(statement).execute(db);
  }
}

const ACCOUNTS = `
  create table tenants (
    tenant_id text primary key,
    email text not null unique,
    plan text not null default 'free',
    active_sandboxes integer not null default 0 check (active_sandboxes >= 0),
    created_at timestamptz(3) not null default now()
  );
  create table api_keys (
    key_id text primary key,
    tenant_id text not null references tenants,
    secret_hash bytea not null unique check (octet_length(secret_hash) = 32),
    prefix text not null,
    revoked_at timestamptz(3),
    created_at timestamptz(3) not null default now()
  );
  create index api_keys_tenant on api_keys (tenant_id, created_at);`;

const OTP = `
  create table otp_codes (
    email text primary key,
    code_hash bytea not null,
    attempts integer not null default 0,
    expires_at timestamptz(3) not null,
    created_at timestamptz(3) not null default now()
  );
  create table otp_requests (
    kind text not null check (kind in ('email', 'ip')),
    subject text not null,
    hits timestamptz[] not null,
    primary key (kind, subject)
  );`;

const WORKERS = `
  create table workers (
    worker_id text primary key,
    url text not null,
    certificate text not null,
    version text not null,
    vcpu integer not null,
    memory_mib integer not null,
    disk_mib integer not null,
    free_memory_mib integer,
    free_disk_mib integer,
    reserved_memory_mib integer not null default 0 check (reserved_memory_mib >= 0),
    templates jsonb not null,
    registered_at timestamptz(3) not null default now(),
    heartbeat_at timestamptz(3) not null default now()
  );`;

const SANDBOXES = `
  create table sandboxes (
    vm_id text primary key,
    tenant_id text not null references tenants,
    worker_id text not null references workers,
    generation integer not null default 1,
    revision integer not null default 0,
    state text not null check (state in
      ('creating', 'configuring', 'booting', 'running', 'paused', 'stopping', 'destroyed')),
    template text not null,
    vcpu integer,
    cpu_fraction double precision,
    memory_mib integer not null,
    disk_mib integer,
    rootfs text,
    host_port integer,
    endpoint text,
    idle_timeout_seconds integer not null,
    max_lifetime_seconds integer not null,
    -- Not jsonb, which refuses strings that JSON allows.
    metadata json not null default '{}',
    persistence_url text,
    active_connections integer not null default 0,
    cpu_seconds double precision not null default 0,
    agent_status text,
    agent_exit_code integer,
    created_at timestamptz(3) not null default now(),
    placed_at timestamptz(3) not null default now(),
    running_at timestamptz(3),
    delete_requested_at timestamptz(3),
    ended_at timestamptz(3),
    end_reason text,
    check ((state = 'destroyed') = (ended_at is not null and end_reason is not null))
  );
  create index sandboxes_tenant on sandboxes (tenant_id, created_at);
  create index sandboxes_active on sandboxes (worker_id) where state <> 'destroyed';`;

const IDEMPOTENCY = `
  create table idempotency_keys (
    tenant_id text not null references tenants,
    operation text not null,
    key text not null,
    body_hash bytea not null,
    subject text not null,
    response jsonb,
    locked_until timestamptz(3) not null,
    created_at timestamptz(3) not null default now(),
    primary key (tenant_id, operation, key)
  );
  create index idempotency_keys_created on idempotency_keys (created_at);`;

const AUDIT = `
  create table audit_records (
    id bigint generated always as identity primary key,
    event text not null,
    tenant_id text,
    details jsonb not null,
    created_at timestamptz(3) not null default now()
  );
  create index audit_records_tenant on audit_records (tenant_id, created_at);`;
