import { type Kysely, sql, type Transaction } from 'kysely';
import { ago, removeBatch } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
import { type ContentIds, collectContentIds, removeContents, useChunks } from './extents.ts';
import { lockWorkspace } from './locks.ts';
import type { Extent, WorkspaceChange } from './scope.ts';

/** A flush of one sandbox's changes. */
export interface Flush {
  readonly flushId: string;
  readonly workspaceId: string;
  readonly vmId: string;
}

export interface FlushLimits {
  readonly changes: number;
  readonly extents: number;
}

/**
 * - `staged`: the commit of the flush will apply the changes
 * - `closed`: the flush is committed, or the sandbox has begun a newer one
 * - `too_large`: the flush would exceed the limits
 * - `unknown_chunks`: a chunk is not stored
 */
export type StageOutcome = 'staged' | 'closed' | 'too_large' | 'unknown_chunks';

/**
 * Stages changes, in one transaction. What was staged before for the same paths is replaced. Chunks that staged changes
 * name are not removed. The first changes of a flush close the sandbox's flush before.
 */
export async function stageChanges(
  db: Kysely<Schema>,
  flush: Flush,
  changes: readonly WorkspaceChange[],
  limits: FlushLimits,
): Promise<StageOutcome> {
  const run = db.transaction().execute<StageOutcome>(async (transaction) => {
    await lockWorkspace(transaction, flush.workspaceId);
    if (!(await openFlush(transaction, flush))) return 'closed';
    const paths = changes.map(({ path }) => path);
    await removeChanges(transaction, flush, sql`path = any(${paths}::bytea[])`);
    if (!(await insertChanges(transaction, flush, changes))) throw new NotStaged('unknown_chunks');
    if (!(await countChanges(transaction, flush, limits))) throw new NotStaged('too_large');
    return 'staged';
  });
  return run.catch((error: unknown) => {
    if (error instanceof NotStaged) return error.outcome;
    throw error;
  });
}

/** Undoes the transaction. */
class NotStaged extends Error {
  readonly outcome: StageOutcome;

  constructor(outcome: StageOutcome) {
    super(outcome);
    this.outcome = outcome;
  }
}

/** False when the flush is closed. */
async function openFlush(transaction: Transaction<Schema>, flush: Flush): Promise<boolean> {
  const { flushId, workspaceId, vmId } = flush;
  const { rows } = await sql<{ is_open: boolean }>`
    select state = 'open' and workspace_id = ${workspaceId} and vm_id = ${vmId} as is_open
    from workspace_flushes where flush_id = ${flushId}`.execute(transaction);
  if (rows[0] !== undefined) return rows[0].is_open;
  const { rows: before } = await sql<{ flush_id: string }>`
    update workspace_flushes set state = 'closed', touched_at = now()
    where workspace_id = ${workspaceId} and vm_id = ${vmId} and state = 'open'
    returning flush_id`.execute(transaction);
  for (const { flush_id } of before) {
    await removeChanges(transaction, { flushId: flush_id, workspaceId }, sql`true`);
  }
  const { rows: made } = await sql`
    insert into workspace_flushes (flush_id, workspace_id, vm_id)
    values (${flushId}, ${workspaceId}, ${vmId})
    -- The flush of another workspace.
    on conflict do nothing returning 1`.execute(transaction);
  return made.length === 1;
}

/** Removes changes with their contents. The transaction has locked the workspace. */
export async function removeChanges(
  transaction: Transaction<Schema>,
  { flushId, workspaceId }: Pick<Flush, 'flushId' | 'workspaceId'>,
  condition: ReturnType<typeof sql>,
): Promise<void> {
  const { rows } = await sql<{ content_ids: ContentIds }>`
    with removed as (
      delete from workspace_changes where flush_id = ${flushId} and ${condition}
      returning content_id)
    select ${collectContentIds} as content_ids from removed`.execute(transaction);
  await removeContents(transaction, workspaceId, rows[0]?.content_ids);
}

/** False when a chunk is not stored. */
async function insertChanges(
  transaction: Transaction<Schema>,
  flush: Flush,
  changes: readonly WorkspaceChange[],
): Promise<boolean> {
  const rows = await withContentIds(transaction, changes);
  const extents = rows.flatMap(({ change, contentId }) =>
    contentId === null ? [] : placeExtents(contentId, extentsOf(change)),
  );
  const used = extents.flatMap(({ extent }) => extent.chunkId ?? []);
  const distinct = [...new Map(used.map((id) => [id.toString('hex'), id])).values()];
  if (!(await useChunks(transaction, flush.workspaceId, distinct))) return false;
  const column = <T>(read: (change: WorkspaceChange) => T) => changes.map(read);
  await sql`
    insert into workspace_changes
      (flush_id, path, kind, mode, mtime_ms, size_bytes, target, version, content_id, extents)
    select ${flush.flushId}, * from unnest(
      ${column(({ path }) => path)}::bytea[],
      ${column(({ kind }) => kind)}::text[],
      ${column((change) => (change.kind === 'deleted' ? 0 : change.mode))}::int[],
      ${column((change) => (change.kind === 'deleted' ? 0 : change.mtimeMs))}::bigint[],
      ${column((change) => (change.kind === 'deleted' ? 0 : change.sizeBytes))}::bigint[],
      ${column((change) => (change.kind === 'deleted' ? null : (change.target ?? null)))}::bytea[],
      ${column(({ version }) => version ?? null)}::bigint[],
      ${rows.map(({ contentId }) => contentId)}::bigint[],
      ${column((change) => extentsOf(change).length)}::int[])`.execute(transaction);
  await sql`
    insert into workspace_extents
      (workspace_id, content_id, first, length, chunk_id, chunk_offset)
    select ${flush.workspaceId}::uuid, * from unnest(
      ${extents.map(({ contentId }) => contentId)}::bigint[],
      ${extents.map(({ first }) => first)}::bigint[],
      ${extents.map(({ extent }) => extent.length)}::bigint[],
      ${extents.map(({ extent }) => extent.chunkId ?? null)}::bytea[],
      ${extents.map(({ extent }) => extent.offset)}::int[])`.execute(transaction);
  return true;
}

/** Gives each file the id of a new content. */
async function withContentIds(
  transaction: Transaction<Schema>,
  changes: readonly WorkspaceChange[],
): Promise<{ change: WorkspaceChange; contentId: string | null }[]> {
  const files = changes.filter(({ kind }) => kind === 'file').length;
  const { rows } = await sql<{ id: string }>`
    select nextval('workspace_content_ids') as id from generate_series(1, ${files}::int)`.execute(
    transaction,
  );
  return changes.map((change) => ({
    change,
    contentId: change.kind === 'file' ? (rows.pop()?.id ?? null) : null,
  }));
}

function extentsOf(change: WorkspaceChange): readonly Extent[] {
  return change.kind === 'deleted' ? [] : (change.extents ?? []);
}

function placeExtents(contentId: string, extents: readonly Extent[]) {
  let end = 0;
  return extents.map((extent) => {
    const first = end;
    end += extent.length;
    return { contentId, first, extent };
  });
}

/** Brings the counters of a flush up to date. False when they exceed the limits. */
async function countChanges(
  transaction: Transaction<Schema>,
  { flushId }: Flush,
  limits: FlushLimits,
): Promise<boolean> {
  const { rows } = await sql<{ changes: number; extents: number }>`
    update workspace_flushes set touched_at = now(), changes = counted.changes, extents = counted.extents
    from (select count(*)::int as changes, coalesce(sum(extents), 0)::int as extents
      from workspace_changes where flush_id = ${flushId}) as counted
    where flush_id = ${flushId} returning workspace_flushes.changes, workspace_flushes.extents`.execute(
    transaction,
  );
  const { changes = 0, extents = 0 } = rows[0] ?? {};
  return changes <= limits.changes && extents <= limits.extents;
}

/** Removes up to `limit` flushes that were closed or committed longer ago than this. Returns their number. */
export function removeFinished(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<number> {
  const isOver = sql`state in ('closed', 'committed') and touched_at < ${ago(olderThanSeconds)}`;
  return removeBatch(db, 'workspace_flushes', isOver, limit);
}

/** Removes up to `limit` open flushes, with what they have staged, that were left for longer than this. Returns their number. */
export async function removeAbandoned(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<number> {
  const { rows } = await sql<{ flush_id: string; workspace_id: string }>`
    select flush_id, workspace_id from workspace_flushes
    where state = 'open' and touched_at < ${ago(olderThanSeconds)}
    order by touched_at limit ${limit}`.execute(db);
  let removed = 0;
  for (const { flush_id: flushId, workspace_id: workspaceId } of rows) {
    removed += await db.transaction().execute(async (transaction) => {
      await lockWorkspace(transaction, workspaceId);
      const { rows: found } = await sql`
        select from workspace_flushes where flush_id = ${flushId}
          and state = 'open' and touched_at < ${ago(olderThanSeconds)}
        for update`.execute(transaction);
      if (found.length === 0) return 0;
      await removeChanges(transaction, { flushId, workspaceId }, sql`true`);
      await sql`delete from workspace_flushes where flush_id = ${flushId}`.execute(transaction);
      return 1;
    });
  }
  return removed;
}
