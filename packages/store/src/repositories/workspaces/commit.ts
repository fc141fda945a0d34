import type { WorkspaceRefusal } from '@svc/contract';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';
import { type ContentIds, collectContentIds, removeContents } from './extents.ts';
import { lockQuota, lockWorkspace } from './locks.ts';
import { usageOfTenant } from './lookup.ts';
import type { WorkspaceQuota } from './scope.ts';
import { type Flush, removeChanges } from './stage.ts';

const INSERTED_AT_ONCE = 5_000;

export interface CommitLimits extends WorkspaceQuota {
  /** Refused changes that the result lists. */
  readonly listed: number;
  /** How long the objects of replaced files are kept, for downloads in progress. */
  readonly graceSeconds: number;
}

/** The result of a commit. */
export interface Commit {
  /** The version of every entry that the flush has put. */
  readonly version: number;
  readonly refusedCount: number;
  /** The first refused changes, in the order of their paths, which are in base64url. */
  readonly refused: readonly { readonly path: string; readonly reason: WorkspaceRefusal }[];
}

/**
 * Applies the staged changes of a flush in one transaction, but for those that are refused. Repeating it returns the same
 * result. Undefined when nothing was staged, or the flush is closed.
 */
export async function commitFlush(
  db: Kysely<Schema>,
  flush: Flush & { readonly tenantId: string },
  limits: CommitLimits,
): Promise<Commit | undefined> {
  return db.transaction().execute(async (transaction) => {
    await lockQuota(transaction, flush.tenantId);
    await lockWorkspace(transaction, flush.workspaceId);
    const { rows } = await sql<{ state: string; result: Commit | null }>`
      select state, result from workspace_flushes
      where flush_id = ${flush.flushId} and workspace_id = ${flush.workspaceId}
        and vm_id = ${flush.vmId}`.execute(transaction);
    if (rows[0]?.state === 'committed') return rows[0].result ?? undefined;
    if (rows[0]?.state !== 'open') return undefined;
    await refuse(transaction, flush, limits);
    const version = await applyChanges(transaction, flush, limits.graceSeconds);
    const result = { version, ...(await readRefused(transaction, flush, limits.listed)) };
    await removeChanges(transaction, flush, sql`true`);
    await sql`
      update workspace_flushes
      set state = 'committed', result = ${JSON.stringify(result)}, touched_at = now()
      where flush_id = ${flush.flushId}`.execute(transaction);
    return result;
  });
}

/** Marks the changes that cannot be applied, one rule after the other: a later one ignores what an earlier one refused. */
async function refuse(
  transaction: Transaction<Schema>,
  flush: Flush & { readonly tenantId: string },
  limits: CommitLimits,
): Promise<void> {
  await refuseDeletionsOfChanged(transaction, flush);
  await refuseReplacedDirectories(transaction, flush);
  await refuseBelowFiles(transaction, flush);
  const used = await usageOfTenant(transaction, flush.tenantId);
  // What all workspaces together may have, counted like those of this one: from what it has now.
  const left = limits.tenantEntries - used.entries;
  await refuseBeyondEntries(transaction, flush, limits.entries, left);
  await refuseBeyondQuota(transaction, flush, limits.tenantBytes - used.bytes);
  await refuseDeletedDirectories(transaction, flush);
}

async function refuseDeletionsOfChanged(
  transaction: Transaction<Schema>,
  { flushId, workspaceId }: Flush,
): Promise<void> {
  await sql`
    update workspace_changes as change set refusal = 'changed' from workspace_files as entry
    where flush_id = ${flushId} and change.kind = 'deleted'
      and entry.workspace_id = ${workspaceId} and entry.path = change.path
      and entry.version <> change.version`.execute(transaction);
}

/** A file or link cannot replace a directory in which an entry stays. */
async function refuseReplacedDirectories(
  transaction: Transaction<Schema>,
  { flushId, workspaceId }: Flush,
): Promise<void> {
  await sql`
    update workspace_changes as change set refusal = 'not_empty'
    where flush_id = ${flushId} and kind in ('file', 'symlink')
      -- Nothing is below a file or link, which saves the search in a flush of changed files.
      and not exists (select from workspace_files as entry
        where entry.workspace_id = ${workspaceId} and entry.path = change.path
          and entry.kind <> 'directory')
      and ${staysBelow(flushId, workspaceId)}`.execute(transaction);
}

/** A deleted directory stays while an entry in it stays or is added. */
async function refuseDeletedDirectories(
  transaction: Transaction<Schema>,
  { flushId, workspaceId }: Flush,
): Promise<void> {
  await sql`
    update workspace_changes as change set refusal = 'not_empty'
    where flush_id = ${flushId} and kind = 'deleted' and refusal is null
      and exists (select from workspace_files as entry
        where entry.workspace_id = ${workspaceId} and entry.path = change.path
          and entry.kind = 'directory')
      and (${staysBelow(flushId, workspaceId)}
        or exists (select from workspace_changes as below
          where below.flush_id = ${flushId} and below.kind <> 'deleted' and below.refusal is null
            and below.path > change.path || '/'::bytea and below.path < change.path || '0'::bytea))`.execute(
    transaction,
  );
}

/** Whether an entry that the flush does not delete is below `change.path`. `0` is the byte after `/`. */
function staysBelow(flushId: string, workspaceId: string) {
  return sql`exists (
    select from workspace_files as entry
    where entry.workspace_id = ${workspaceId}
      and entry.path > change.path || '/'::bytea and entry.path < change.path || '0'::bytea
      and not exists (select from workspace_changes as deletion
        where deletion.flush_id = ${flushId} and deletion.path = entry.path
          and deletion.kind = 'deleted' and deletion.refusal is null))`;
}

/** Nothing can be below what is a file or link after the flush. */
async function refuseBelowFiles(
  transaction: Transaction<Schema>,
  { flushId, workspaceId }: Flush,
): Promise<void> {
  const { rows } = await sql<{ paths: string | null }>`
    with recursive directories (path) as (
      -- Bytes as characters, because only text has regular expressions.
      select distinct substring(convert_from(path, 'LATIN1') from '^(.*)/') from workspace_changes
      where flush_id = ${flushId} and kind <> 'deleted' and refusal is null
      union
      select substring(path from '^(.*)/') from directories where path is not null)
    select array_agg(convert_to(path, 'LATIN1'))::text as paths from directories
    where path is not null`.execute(transaction);
  const directories = rows[0]?.paths ?? null;
  if (directories === null) return;
  const { rows: found } = await sql<{ paths: string | null }>`
    select array_agg(directory.path)::text as paths
    from unnest(${directories}::bytea[]) as directory (path)
    left join workspace_changes as change
      on change.flush_id = ${flushId} and change.path = directory.path and change.refusal is null
    left join workspace_files as entry
      on entry.workspace_id = ${workspaceId} and entry.path = directory.path
    where coalesce(change.kind, entry.kind) in ('file', 'symlink')`.execute(transaction);
  const files = found[0]?.paths ?? null;
  if (files === null) return;
  await sql`
    update workspace_changes as change set refusal = 'not_a_directory'
    from unnest(${files}::bytea[]) as file (path)
    where change.flush_id = ${flushId} and change.kind <> 'deleted' and change.refusal is null
      and change.path > file.path || '/'::bytea and change.path < file.path || '0'::bytea`.execute(
    transaction,
  );
}

/**
 * @param limit of the workspace
 * @param left how many more the tenant may have than it has now
 */
async function refuseBeyondEntries(
  transaction: Transaction<Schema>,
  { flushId, workspaceId }: Flush,
  limit: number,
  left: number,
): Promise<void> {
  await sql`
    with added as (
      select change.path, row_number() over (order by change.path) as number
      from workspace_changes as change
      where flush_id = ${flushId} and kind <> 'deleted' and refusal is null
        and not exists (select from workspace_files as entry
          where entry.workspace_id = ${workspaceId} and entry.path = change.path)),
    room as (
      select least(${limit}::bigint - entry_count, ${left}::bigint) + (
        select count(*) from workspace_changes as change
        join workspace_files as entry using (path)
        where flush_id = ${flushId} and change.kind = 'deleted' and refusal is null
          and entry.workspace_id = ${workspaceId}) as count
      from workspaces where workspace_id = ${workspaceId})
    update workspace_changes as change set refusal = 'too_many_entries' from added, room
    where change.flush_id = ${flushId} and change.path = added.path
      and added.number > greatest(room.count, 0)`.execute(transaction);
}

/** The changes that need least space are taken first, so that as many as possible are saved. */
async function refuseBeyondQuota(
  transaction: Transaction<Schema>,
  { flushId, workspaceId }: Flush,
  bytesLeft: number,
): Promise<void> {
  await sql`
    with growth as (
      select change.path, case change.kind when 'deleted' then 0 else change.size_bytes end
        - coalesce(entry.size_bytes, 0) as bytes
      from workspace_changes as change
      left join workspace_files as entry
        on entry.workspace_id = ${workspaceId} and entry.path = change.path
      where flush_id = ${flushId} and refusal is null),
    total as (
      select path, bytes, sum(bytes) over (order by bytes, path) as growth from growth)
    update workspace_changes as change set refusal = 'quota_exceeded' from total
    where change.flush_id = ${flushId} and change.path = total.path
      and total.bytes > 0 and total.growth > ${bytesLeft}`.execute(transaction);
}

/** Returns the version of the entries that were put. */
async function applyChanges(
  transaction: Transaction<Schema>,
  { flushId, workspaceId, tenantId }: Flush & { readonly tenantId: string },
  graceSeconds: number,
): Promise<number> {
  const { rows } = await sql<{ version: string; content_ids: ContentIds }>`
    with removed as (
      delete from workspace_files as entry using workspace_changes as change
      where change.flush_id = ${flushId} and change.refusal is null
        and entry.workspace_id = ${workspaceId} and entry.path = change.path
      returning entry.kind, entry.size_bytes, entry.object_key, entry.content_id),
    discarded as (
      insert into object_deletions (object_key, due_at, tenant_id, size_bytes)
      select object_key, now() + make_interval(secs => ${graceSeconds}), ${tenantId}, size_bytes
      from removed
      where object_key is not null
      on conflict do nothing),
    put as (
      select kind, size_bytes from workspace_changes
      where flush_id = ${flushId} and refusal is null and kind <> 'deleted')
    update workspaces set
      size_bytes = size_bytes + (select coalesce(sum(size_bytes), 0) from put)
        - (select coalesce(sum(size_bytes), 0) from removed),
      file_count = file_count + (select count(*) from put where kind = 'file')
        - (select count(*) from removed where kind = 'file'),
      entry_count = entry_count + (select count(*) from put) - (select count(*) from removed),
      version = version + 1, used_at = now()
    where workspace_id = ${workspaceId}
    returning version, (select ${collectContentIds} from removed) as content_ids`.execute(
    transaction,
  );
  await removeContents(transaction, workspaceId, rows[0]?.content_ids);
  const version = Number(rows[0]?.version);
  await insertEntries(transaction, { flushId, workspaceId, version });
  // Their contents are in use now.
  await sql`
    delete from workspace_changes where flush_id = ${flushId} and refusal is null`.execute(
    transaction,
  );
  return version;
}

/** Inserts what the flush puts, in batches that meet the deadline of a statement on a slow machine. */
async function insertEntries(
  transaction: Transaction<Schema>,
  { flushId, workspaceId, version }: Pick<Flush, 'flushId' | 'workspaceId'> & { version: number },
): Promise<void> {
  for (let after = Buffer.alloc(0); ; ) {
    const { rows } = await sql<{ path: Buffer }>`
      with batch as materialized (
        select * from workspace_changes
        where flush_id = ${flushId} and path > ${after} and refusal is null and kind <> 'deleted'
        order by path limit ${INSERTED_AT_ONCE}),
      inserted as (
        insert into workspace_files (workspace_id, path, kind, mode, mtime_ms, size_bytes,
          modified_at, target, content_id, extents, version)
        select ${workspaceId}, path, kind, mode, mtime_ms, size_bytes, now(), target, content_id,
          extents, ${version}
        from batch)
      select path from batch order by path desc limit 1`.execute(transaction);
    if (rows[0] === undefined) return;
    after = Buffer.from(rows[0].path);
  }
}

async function readRefused(
  transaction: Transaction<Schema>,
  { flushId }: Flush,
  limit: number,
): Promise<Pick<Commit, 'refused' | 'refusedCount'>> {
  const { rows } = await sql<{ path: Buffer; reason: WorkspaceRefusal; count: number }>`
    select path, refusal as reason, (count(*) over ())::int as count from workspace_changes
    where flush_id = ${flushId} and refusal is not null order by path limit ${limit}`.execute(
    transaction,
  );
  const refused = rows.map(({ path, reason }) => ({ path: path.toString('base64url'), reason }));
  return { refused, refusedCount: rows[0]?.count ?? 0 };
}
