import { type Kysely, sql } from 'kysely';

/** Persistent files of customers. Their contents are objects of the object store. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(TABLES).execute(db);
}

const TABLES = `
  create table workspaces (
    workspace_id uuid primary key default gen_random_uuid(),
    tenant_id text not null references tenants,
    app_id text not null,
    capset_id text not null,
    -- The sums of its files.
    size_bytes bigint not null default 0 check (size_bytes >= 0),
    file_count integer not null default 0 check (file_count >= 0),
    -- The last time an upload was begun.
    used_at timestamptz(3) not null default now(),
    created_at timestamptz(3) not null default now(),
    unique (tenant_id, app_id, capset_id)
  );
  create index workspaces_empty on workspaces (used_at) where file_count = 0;

  create table workspace_files (
    workspace_id uuid not null references workspaces on delete cascade,
    -- Relative to the workspace. Bytes, because names on Linux have no encoding.
    path bytea not null check (length(path) between 1 and 4096),
    size_bytes bigint not null check (size_bytes >= 0),
    modified_at timestamptz(3) not null,
    object_key text not null unique,
    primary key (workspace_id, path)
  );

  -- An upload that a customer may make, or has made.
  create table workspace_uploads (
    upload_id uuid primary key,
    workspace_id uuid not null references workspaces on delete cascade,
    path bytea not null,
    expires_at timestamptz(3) not null,
    -- When its content became a file, or was refused.
    taken_at timestamptz(3),
    created_at timestamptz(3) not null default now()
  );
  create index workspace_uploads_open on workspace_uploads (workspace_id) where taken_at is null;
  create index workspace_uploads_expired on workspace_uploads (expires_at);

  -- Objects that no file uses, or none yet.
  create table discarded_objects (
    object_key text primary key,
    -- When to delete the object.
    due_at timestamptz(3) not null,
    -- Whether a control plane is deleting it, so that no file may use it any more.
    claimed boolean not null default false
  );
  create index discarded_objects_due on discarded_objects (due_at);`;
