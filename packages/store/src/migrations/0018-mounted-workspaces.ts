import { type Kysely, sql } from 'kysely';

/**
 * Workspaces that are mounted into sandboxes: directories and symbolic links beside files, contents as chunks, and the
 * changes of flushes until they are committed.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [WORKSPACES, CHUNKS, CONTENTS, ENTRIES, FLUSHES]) {
    await sql.raw(statement).execute(db);
  }
}

const WORKSPACES = `
  alter table workspaces
    -- Files, directories and symbolic links.
    add column entry_count integer not null default 0 check (entry_count >= 0),
    -- The version of the last change of an entry.
    add column version bigint not null default 1;
  update workspaces set entry_count = file_count;
  drop index workspaces_empty;
  create index workspaces_empty on workspaces (used_at) where entry_count = 0;`;

const CHUNKS = `
  create table workspace_chunks (
    workspace_id uuid not null references workspaces on delete cascade,
    -- A keyed digest of the content.
    chunk_id bytea not null check (octet_length(chunk_id) = 32),
    -- Never used for another upload, so that deleting an object cannot hit a newer one.
    object_key text not null unique,
    stored_bytes integer not null,
    -- Absent until the object was seen in the object store.
    stored_at timestamptz(3),
    -- Absent while an extent names the chunk. Renewed by a flush that is going to name it.
    unused_since timestamptz(3) default now(),
    primary key (workspace_id, chunk_id),
    check (stored_at is not null or unused_since is not null)
  );
  create index workspace_chunks_unused on workspace_chunks (unused_since) where unused_since is not null;`;

const CONTENTS = `
  create sequence workspace_content_ids;

  -- The contents of files, of entries and of staged changes.
  create table workspace_extents (
    workspace_id uuid not null,
    content_id bigint not null,
    -- Where the extent begins in the file.
    first bigint not null,
    length bigint not null check (length > 0),
    -- Absent for a hole, which reads as zeros.
    chunk_id bytea,
    chunk_offset integer not null,
    primary key (content_id, first),
    foreign key (workspace_id, chunk_id) references workspace_chunks
  );
  create index workspace_extents_chunk on workspace_extents (workspace_id, chunk_id);`;

const ENTRIES = `
  alter table workspace_files
    alter column object_key drop not null,
    add column kind text not null default 'file' check (kind in ('file', 'directory', 'symlink')),
    add column mode integer not null default 420,
    -- As the sandbox set it; absent for uploads. modified_at is when the entry changed here.
    add column mtime_ms bigint,
    -- Where a symbolic link leads.
    add column target bytea,
    -- Chunked content. Absent for one that is the object object_key.
    add column content_id bigint unique,
    add column extents integer not null default 0,
    add column version bigint not null default 1,
    add check (num_nonnulls(object_key, content_id) = (kind = 'file')::int),
    add check ((target is not null) = (kind = 'symlink'));`;

const FLUSHES = `
  create table workspace_flushes (
    flush_id uuid primary key,
    workspace_id uuid not null references workspaces on delete cascade,
    vm_id text not null,
    state text not null default 'open' check (state in ('open', 'closed', 'committed')),
    -- The numbers of its changes and of their extents.
    changes integer not null default 0,
    extents integer not null default 0,
    -- The answer to the commit.
    result jsonb,
    touched_at timestamptz(3) not null default now()
  );
  create unique index workspace_flushes_open on workspace_flushes (workspace_id, vm_id) where state = 'open';
  create index workspace_flushes_age on workspace_flushes (state, touched_at);

  create table workspace_changes (
    flush_id uuid not null references workspace_flushes on delete cascade,
    path bytea not null check (length(path) between 1 and 4096),
    kind text not null check (kind in ('file', 'directory', 'symlink', 'deleted')),
    mode integer not null,
    mtime_ms bigint not null,
    size_bytes bigint not null,
    target bytea,
    content_id bigint,
    extents integer not null,
    -- That of the entry which a deletion applies to.
    version bigint,
    -- Why the commit in progress does not apply the change.
    refusal text,
    primary key (flush_id, path)
  );`;
