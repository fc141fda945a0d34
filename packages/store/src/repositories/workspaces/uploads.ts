import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';
import { lockTenant } from './locks.ts';
import { hasConflict, sizeOfTenant } from './lookup.ts';
import type { WorkspaceScope } from './scope.ts';

export interface NewUpload extends WorkspaceScope {
  readonly uploadId: string;
  readonly path: Buffer;
  /** Number of bytes, if the customer has announced it. */
  readonly sizeBytes: number | undefined;
  readonly expiresSeconds: number;
}

export interface UploadLimits {
  /** Bytes of all workspaces of a tenant. */
  readonly tenantBytes: number;
  /** Uploads of a tenant that have begun and not yet become files or expired. */
  readonly openUploads: number;
}

export type UploadRefusal = 'over_quota' | 'too_many_uploads' | 'path_conflict';

/** Begins an upload, and the workspace if there is none. Returns the id of the workspace. Safe under concurrency. */
export async function beginUpload(
  db: Kysely<Schema>,
  upload: NewUpload,
  limits: UploadLimits,
): Promise<{ workspaceId: string } | UploadRefusal> {
  const { tenantId, appId, capsetId, uploadId, path, sizeBytes, expiresSeconds } = upload;
  return db.transaction().execute(async (transaction) => {
    await lockTenant(transaction, tenantId);
    if ((await countOpenUploads(transaction, tenantId)) >= limits.openUploads) {
      return 'too_many_uploads';
    }
    const after = (await sizeOfTenant(transaction, tenantId)) + (sizeBytes ?? 1);
    if (after > limits.tenantBytes) return 'over_quota';
    const { rows } = await sql<{ workspace_id: string }>`
      insert into workspaces (tenant_id, app_id, capset_id)
      values (${tenantId}, ${appId}, ${capsetId})
      on conflict (tenant_id, app_id, capset_id) do update set used_at = now()
      returning workspace_id`.execute(transaction);
    const workspaceId = rows[0]?.workspace_id ?? '';
    if (await hasConflict(transaction, workspaceId, path)) return 'path_conflict';
    await sql`
      insert into workspace_uploads (upload_id, workspace_id, path, expires_at)
      values (${uploadId}, ${workspaceId}, ${path}, now() + make_interval(secs => ${expiresSeconds}))`.execute(
      transaction,
    );
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

/** Up to `limit` workspaces with uploads that expired longer ago than this, with their tenants. */
export async function findExpired(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<{ workspaceId: string; tenantId: string }[]> {
  const { rows } = await sql<{ workspace_id: string; tenant_id: string }>`
    select workspace_id, tenant_id from workspaces where workspace_id in (
      select workspace_id from workspace_uploads
      where expires_at < now() - make_interval(secs => ${olderThanSeconds})
      order by expires_at limit ${limit})`.execute(db);
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

async function countOpenUploads(db: Kysely<Schema>, tenantId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from workspace_uploads join workspaces using (workspace_id)
    where tenant_id = ${tenantId} and taken_at is null and expires_at > now()`.execute(db);
  return rows[0]?.count ?? 0;
}
