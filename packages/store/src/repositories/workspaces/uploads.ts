import { type Kysely, sql } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
import { lockQuota } from './locks.ts';
import { hasConflict, usageOfTenant } from './lookup.ts';
import { makeWorkspace } from './mount.ts';
import type { WorkspaceQuota, WorkspaceScope } from './scope.ts';

/** For how long expired uploads count. Their rows may stay for longer, which should keep no customer waiting who left some undone. */
const EXPIRED_COUNT_SECONDS = 65 * 60;

export interface NewUpload extends WorkspaceScope {
  readonly uploadId: string;
  readonly path: Buffer;
  /** Number of bytes, if the customer has announced it. */
  readonly sizeBytes: number | undefined;
  readonly expiresSeconds: number;
}

export interface UploadLimits extends Omit<WorkspaceQuota, 'entries'> {
  /** Uploads of a tenant that have begun and not yet become files or expired. */
  readonly openUploads: number;
  /** Bytes that an upload may have whose number is not announced. */
  readonly uploadBytes: number;
  /** Bytes that the uploads of a tenant may have that have begun, are not files yet and expired at most 65 minutes ago. */
  readonly pendingBytes: number;
}

export type UploadRefusal = 'over_quota' | 'too_many_uploads' | 'path_conflict';

/** Begins an upload, and the workspace if there is none. Returns the id of the workspace. Safe under concurrency. */
export async function beginUpload(
  db: Kysely<Schema>,
  upload: NewUpload,
  limits: UploadLimits,
  mostWorkspaces: number,
): Promise<{ workspaceId: string } | UploadRefusal> {
  const { tenantId, uploadId, path, sizeBytes, expiresSeconds } = upload;
  return db.transaction().execute(async (transaction) => {
    await lockQuota(transaction, tenantId);
    const pending = await pendingUploads(transaction, tenantId);
    if (pending.open >= limits.openUploads) return 'too_many_uploads';
    const reservedBytes = sizeBytes ?? limits.uploadBytes;
    if (pending.bytes + reservedBytes > limits.pendingBytes) return 'too_many_uploads';
    const { bytes, entries } = await usageOfTenant(transaction, tenantId);
    if (bytes + (sizeBytes ?? 1) > limits.tenantBytes) return 'over_quota';
    if (entries >= limits.tenantEntries) return 'over_quota';
    const workspaceId = await makeWorkspace(transaction, upload, mostWorkspaces);
    if (workspaceId === undefined) return 'over_quota';
    if (await hasConflict(transaction, workspaceId, path)) return 'path_conflict';
    await sql`
      insert into workspace_uploads (upload_id, workspace_id, path, reserved_bytes, expires_at)
      values (${uploadId}, ${workspaceId}, ${path}, ${reservedBytes},
        now() + make_interval(secs => ${expiresSeconds}))`.execute(transaction);
    return { workspaceId };
  });
}

/** Whether an upload may still become a file. */
export async function isOpenUpload(db: Kysely<Schema>, uploadId: string): Promise<boolean> {
  const { rows } = await sql`
    select from workspace_uploads where upload_id = ${uploadId} and taken_at is null`.execute(db);
  return rows.length > 0;
}

/** The workspaces of a tenant with uploads that are not files yet. */
export async function findUploading(db: Kysely<Schema>, tenantId: string): Promise<string[]> {
  const { rows } = await sql<{ workspace_id: string }>`
    select workspace_id from workspaces where tenant_id = ${tenantId} and exists (
      select from workspace_uploads
      where workspace_uploads.workspace_id = workspaces.workspace_id and taken_at is null)`.execute(
    db,
  );
  return rows.map((row) => row.workspace_id);
}

/**
 * Up to `limit` workspaces with uploads that expired longer ago than this, with their tenants. They are in no order, so
 * that those whose uploads cannot be ended keep no others waiting.
 */
export async function findExpired(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<{ workspaceId: string; tenantId: string }[]> {
  const { rows } = await sql<{ workspace_id: string; tenant_id: string }>`
    select workspace_id, tenant_id from workspaces where workspace_id in (
      select workspace_id from workspace_uploads
      where expires_at < now() - make_interval(secs => ${olderThanSeconds}))
    order by random() limit ${limit}`.execute(db);
  return rows.map((row) => ({ workspaceId: row.workspace_id, tenantId: row.tenant_id }));
}

/** Removes the uploads of a workspace that expired longer ago than this. */
export async function removeExpired(
  db: Kysely<Schema>,
  workspaceId: string,
  olderThanSeconds: number,
): Promise<void> {
  await sql`
    delete from workspace_uploads where workspace_id = ${workspaceId}
      and expires_at < now() - make_interval(secs => ${olderThanSeconds})`.execute(db);
}

/** The number of open uploads of a tenant, and the bytes that they and recently expired ones, whose objects may be there, may have. */
async function pendingUploads(
  db: Kysely<Schema>,
  tenantId: string,
): Promise<{ open: number; bytes: number }> {
  const { rows } = await sql<{ open: string; bytes: string }>`
    select count(*) filter (where expires_at > now()) as open,
      coalesce(sum(reserved_bytes)
        filter (where expires_at > ${ago(EXPIRED_COUNT_SECONDS)}), 0) as bytes
    from workspace_uploads join workspaces using (workspace_id)
    where tenant_id = ${tenantId} and taken_at is null`.execute(db);
  const { open = 0, bytes = 0 } = rows[0] ?? {};
  return { open: Number(open), bytes: Number(bytes) };
}
