import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';
import { type ContentIds, collectContentIds, removeContents } from './extents.ts';
import { lockQuota, lockWorkspace } from './locks.ts';
import { countEntries, findFile, hasConflict, usageOfTenant } from './lookup.ts';
import type { WorkspaceFile, WorkspaceQuota } from './scope.ts';

/** Of an upload that replaces no file. */
const NEW_FILE_MODE = 0o644;

/** The content of an upload, copied to an object that nothing else writes. */
export interface TakenUpload {
  readonly tenantId: string;
  readonly workspaceId: string;
  readonly uploadId: string;
  /** Reserved by `reserve`. */
  readonly objectKey: string;
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
}

export interface TakeLimits extends WorkspaceQuota {
  /** How long the object of a replaced file is kept, for downloads in progress. */
  readonly graceSeconds: number;
}

/**
 * - `taken`: the upload is a file now
 * - `superseded`: the file has newer content
 * - `over_quota`, `path_conflict`: the upload is refused
 * - `gone`: the upload is unknown or another control plane has taken it, or the object's reservation has ended
 */
export type TakeOutcome = 'taken' | 'superseded' | 'over_quota' | 'path_conflict' | 'gone';

/** Reserves the key of an object that is about to be written: unless a file uses it in time, it is deleted. */
export async function reserve(
  db: Kysely<Schema>,
  objectKey: string,
  seconds: number,
): Promise<void> {
  await sql`
    insert into object_deletions (object_key, due_at)
    values (${objectKey}, now() + make_interval(secs => ${seconds}))`.execute(db);
}

/** Gives up a reserved object that no file uses, so that it is deleted at once. */
export async function giveUp(db: Kysely<Schema>, objectKey: string): Promise<void> {
  await sql`
    update object_deletions set due_at = now()
    where object_key = ${objectKey} and not claimed`.execute(db);
}

/** Makes the content of an upload a file, in one transaction. At most one of several calls for an upload succeeds. */
export async function takeUpload(
  db: Kysely<Schema>,
  upload: TakenUpload,
  limits: TakeLimits,
): Promise<TakeOutcome> {
  const run = db.transaction().execute<TakeOutcome>(async (transaction) => {
    await lockQuota(transaction, upload.tenantId);
    await lockWorkspace(transaction, upload.workspaceId);
    const closed = await closeUpload(transaction, upload);
    if (closed === undefined) return 'gone';
    const { path } = closed;
    const refusal = await refusalOf(transaction, upload, closed, limits);
    if (refusal !== undefined) return refusal;
    if (!(await useReserved(transaction, upload.objectKey))) throw new ReservationEnded();
    await replaceFile(transaction, upload, path, limits.graceSeconds);
    return 'taken';
  });
  return run.catch((error: unknown) => {
    if (error instanceof ReservationEnded) return 'gone';
    throw error;
  });
}

/** Undoes the transaction: the object that was to become the file is being deleted. */
class ReservationEnded extends Error {}

interface ClosedUpload {
  readonly path: Buffer;
  /** When it began, by the clock of the database. */
  readonly createdAt: Date;
}

/** Marks an upload as done; undefined if it is done or unknown. */
export async function closeUpload(
  db: Kysely<Schema>,
  { uploadId, workspaceId }: Pick<TakenUpload, 'uploadId' | 'workspaceId'>,
): Promise<ClosedUpload | undefined> {
  const { rows } = await sql<{ path: Buffer; created_at: Date }>`
    update workspace_uploads set taken_at = now()
    where upload_id = ${uploadId} and workspace_id = ${workspaceId} and taken_at is null
    returning path, created_at`.execute(db);
  return rows[0] && { path: rows[0].path, createdAt: rows[0].created_at };
}

async function refusalOf(
  db: Kysely<Schema>,
  { tenantId, workspaceId, sizeBytes, modifiedAt }: TakenUpload,
  { path, createdAt }: ClosedUpload,
  { tenantBytes, tenantEntries, entries }: TakeLimits,
): Promise<'superseded' | 'over_quota' | 'path_conflict' | undefined> {
  const current = await findFile(db, workspaceId, path);
  if (current !== undefined && isNewer(current, modifiedAt, createdAt)) return 'superseded';
  const used = await usageOfTenant(db, tenantId);
  if (used.bytes - (current?.sizeBytes ?? 0) + sizeBytes > tenantBytes) return 'over_quota';
  if (current === undefined) {
    const here = await countEntries(db, workspaceId);
    if (used.entries >= tenantEntries || here >= entries) return 'over_quota';
  }
  return (await hasConflict(db, workspaceId, path)) ? 'path_conflict' : undefined;
}

/** Whether a file is newer than an upload that began and arrived at these times. */
function isNewer({ modifiedAt, content }: WorkspaceFile, arrived: Date, began: Date): boolean {
  // S3 says only in which second an upload arrived.
  if (secondOf(modifiedAt) <= secondOf(arrived)) return false;
  // The time of an upload is by the clock of the object store, that of what a sandbox saved by the database's.
  return content.objectKey !== undefined || modifiedAt > began;
}

function secondOf(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}

/** Takes a reserved object out of those to be deleted. False once it is being deleted. */
async function useReserved(db: Kysely<Schema>, objectKey: string): Promise<boolean> {
  const { numAffectedRows } = await sql`
    delete from object_deletions where object_key = ${objectKey} and not claimed`.execute(db);
  return numAffectedRows === 1n;
}

async function replaceFile(
  db: Kysely<Schema>,
  { tenantId, workspaceId, objectKey, sizeBytes, modifiedAt }: TakenUpload,
  path: Buffer,
  graceSeconds: number,
): Promise<void> {
  const { rows } = await sql<{ version: string; mode: number; content_ids: ContentIds }>`
    with old as (
      delete from workspace_files where workspace_id = ${workspaceId} and path = ${path}
      returning kind, mode, size_bytes, object_key, content_id),
    discarded as (
      insert into object_deletions (object_key, due_at, tenant_id, size_bytes)
      select object_key, now() + make_interval(secs => ${graceSeconds}), ${tenantId}, size_bytes
      from old
      where object_key is not null
      on conflict do nothing)
    update workspaces set
      size_bytes = size_bytes + ${sizeBytes} - coalesce((select size_bytes from old), 0),
      file_count = file_count + 1 - (select count(*) from old where kind = 'file'),
      entry_count = entry_count + 1 - (select count(*) from old),
      version = version + 1
    where workspace_id = ${workspaceId}
    returning version, coalesce((select mode from old where kind = 'file'), ${NEW_FILE_MODE}) as mode,
      (select ${collectContentIds} from old) as content_ids`.execute(db);
  await removeContents(db, workspaceId, rows[0]?.content_ids);
  // A statement of its own, because one cannot delete a row and insert it again.
  await sql`
    insert into workspace_files (workspace_id, path, mode, size_bytes, modified_at, object_key, version)
    values (${workspaceId}, ${path}, ${rows[0]?.mode}, ${sizeBytes}, ${modifiedAt}, ${objectKey},
      ${rows[0]?.version})`.execute(db);
}
