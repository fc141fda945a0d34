import { type Kysely, sql } from 'kysely';

/** Sessions, their history and files, and agents in sandboxes. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [SESSIONS, HISTORY, FILES, AGENTS]) {
    await sql.raw(statement).execute(db);
  }
}

const SESSIONS = `
  create table sessions (
    session_id uuid primary key,
    tenant_id text not null references tenants,
    status text not null check (status in ('active', 'completed', 'failed', 'expired')),
    -- Rises with each start; what an earlier one still writes is refused.
    generation integer not null default 1,
    -- The sandbox of this generation.
    vm_id text not null,
    agent text not null,
    agent_version text,
    app_id text not null,
    set_id text not null,
    -- json, not jsonb, which refuses strings that JSON allows.
    app json,
    template text not null,
    vendor text not null,
    requested_model text,
    base_url text,
    model text not null,
    secrets text[] not null,
    user_id text not null,
    -- Held by the one request that starts or stops it.
    busy_by uuid,
    busy_until timestamptz(3),
    last_seq bigint not null default 0,
    -- First frame of the newest commit.
    commit_seq bigint not null default 0,
    -- Bytes, for text refuses NUL and an agent may say anything.
    conversation bytea,
    files_id text,
    created_at timestamptz(3) not null default now(),
    expires_at timestamptz(3) not null,
    ended_at timestamptz(3),
    check ((status = 'active') = (ended_at is null))
  );
  create index sessions_tenant on sessions (tenant_id, created_at, session_id);
  create index sessions_active on sessions (tenant_id) where status = 'active';`;

const HISTORY = `
  create table session_frames (
    session_id uuid not null references sessions on delete cascade,
    first_seq bigint not null,
    last_seq bigint not null,
    frames bytea not null,
    primary key (session_id, first_seq)
  );`;

const FILES = `
  create table session_uploads (
    upload_id uuid primary key,
    session_id uuid not null references sessions on delete cascade,
    files_id text not null,
    -- Absent until every piece is there.
    size_bytes bigint,
    -- Named by a turn; the others are swept.
    committed boolean not null default false,
    created_at timestamptz(3) not null default now()
  );
  create unique index session_uploads_complete on session_uploads (session_id, files_id)
    where size_bytes is not null;
  create index session_uploads_orphans on session_uploads (created_at) where not committed;
  create table session_pieces (
    upload_id uuid not null references session_uploads on delete cascade,
    piece integer not null,
    bytes bytea not null,
    primary key (upload_id, piece)
  );`;

const AGENTS = `
  alter table sandboxes
    add column agent text,
    add column session_id uuid,
    add column session_generation integer;
  create index sandboxes_session on sandboxes (session_id) where session_id is not null;
  -- What the agent of a sandbox that lives is run with.
  create table agent_secrets (
    vm_id text primary key references sandboxes on delete cascade,
    tenant_id text not null references tenants,
    sealed_values bytea not null,
    wrapped_key bytea not null,
    master_key_id text not null references master_keys
  );
  create index agent_secrets_master_key on agent_secrets (master_key_id, vm_id);`;
