import { type Kysely, sql } from 'kysely';

/** Files of sessions as chunks in the object store. Files that are in the database stay there until they are replaced. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [KEYS, CHUNKS, MANIFESTS, DELETIONS, KEPT]) {
    await sql.raw(statement).execute(db);
  }
}

const KEYS = `
  -- The key from which the keys of a tenant's stored chunks are derived, wrapped by a master key.
  create table tenant_keys (
    tenant_id text primary key references tenants,
    wrapped_key bytea not null,
    master_key_id text not null references master_keys,
    created_at timestamptz(3) not null default now()
  );
  create index tenant_keys_master_key on tenant_keys (master_key_id, tenant_id);`;

const CHUNKS = `
  create table session_chunks (
    session_id uuid not null references sessions on delete cascade,
    -- A keyed digest of the content.
    chunk_id bytea not null check (octet_length(chunk_id) = 32),
    -- Never used for another upload, so that deleting an object cannot hit a newer one.
    object_key text not null unique,
    stored_bytes integer not null,
    -- Absent until the object was seen in the object store.
    stored_at timestamptz(3),
    -- Absent while the session's files contain the chunk. Renewed by a save that is going to name it.
    unused_since timestamptz(3) default now(),
    primary key (session_id, chunk_id),
    check (stored_at is not null or unused_since is not null)
  );
  create index session_chunks_unused on session_chunks (unused_since) where unused_since is not null;`;

const MANIFESTS = `
  -- The files named by sessions.files_id.
  create table session_manifests (
    session_id uuid primary key references sessions on delete cascade,
    files_id text not null,
    size_bytes bigint not null,
    -- The ids of the chunks, 32 bytes each, in the order of the files' content.
    chunk_ids bytea not null
  );`;

const DELETIONS = `
  -- Objects that nothing names any more, to be deleted from the object store.
  create table object_deletions (
    object_key text primary key,
    requested_at timestamptz(3) not null default now()
  );
  create index object_deletions_age on object_deletions (requested_at);`;

const KEPT = `
  -- Bytes that are stored for a resume: files as they are stored, conversation and frames.
  alter table sessions add column kept_bytes bigint not null default 0;
  update sessions set kept_bytes = coalesce(octet_length(conversation), 0)
    + coalesce((select sum(octet_length(frames)) from session_frames frames
        where frames.session_id = sessions.session_id), 0)
    + coalesce((select sum(size_bytes) from session_uploads uploads
        where uploads.session_id = sessions.session_id and committed), 0);`;
