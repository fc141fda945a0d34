import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';
import type { Workspace, WorkspaceContent, WorkspaceFile, WorkspaceScope } from './scope.ts';

interface WorkspaceColumns {
  readonly workspace_id: string;
  readonly app_id: string;
  readonly capset_id: string;
  readonly size_bytes: string;
  readonly file_count: number;
}

interface FileColumns {
  readonly path: Buffer;
  readonly size_bytes: string;
  readonly modified_at: Date;
  readonly version: string;
  readonly object_key: string | null;
  readonly content_id: string | null;
}

/** A content in chunks, and its file. */
export interface ContentOfFile {
  readonly tenantId: string;
  readonly workspaceId: string;
  readonly contentId: string;
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
}

/** A tenant's workspaces that have files or uploads, in the order of their scopes. */
export async function listWorkspaces(db: Kysely<Schema>, tenantId: string): Promise<Workspace[]> {
  const { rows } = await sql<WorkspaceColumns>`
    select * from workspaces where tenant_id = ${tenantId} order by app_id, capset_id`.execute(db);
  return rows.map(workspaceOf);
}

/** A workspace. Undefined when nothing was ever uploaded to it. */
export async function findWorkspace(
  db: Kysely<Schema>,
  { tenantId, appId, capsetId }: WorkspaceScope,
): Promise<Workspace | undefined> {
  const { rows } = await sql<WorkspaceColumns>`
    select * from workspaces
    where tenant_id = ${tenantId} and app_id = ${appId} and capset_id = ${capsetId}`.execute(db);
  return rows[0] && workspaceOf(rows[0]);
}

/** Up to `limit` files whose paths start with `prefix` and follow `after`, in the order of their bytes. */
export async function listFiles(
  db: Kysely<Schema>,
  workspaceId: string,
  page: { readonly prefix: Buffer; readonly after: Buffer; readonly limit: number },
): Promise<WorkspaceFile[]> {
  const { prefix, after, limit } = page;
  const { rows } = await sql<FileColumns>`
    select * from workspace_files
    where workspace_id = ${workspaceId} and kind = 'file' and path > ${after} and path >= ${prefix}
      and substring(path from 1 for ${prefix.length}) = ${prefix}
    order by path limit ${limit}`.execute(db);
  return rows.map(fileOf);
}

/** The file at a path. */
export async function findFile(
  db: Kysely<Schema>,
  workspaceId: string,
  path: Buffer,
): Promise<WorkspaceFile | undefined> {
  const { rows } = await sql<FileColumns>`
    select * from workspace_files
    where workspace_id = ${workspaceId} and path = ${path} and kind = 'file'`.execute(db);
  return rows[0] && fileOf(rows[0]);
}

/** The file with this content in chunks, and the tenant of its workspace. */
export async function findContent(
  db: Kysely<Schema>,
  workspaceId: string,
  contentId: string,
): Promise<ContentOfFile | undefined> {
  const { rows } = await sql<{ tenant_id: string; size_bytes: string; modified_at: Date }>`
    select tenant_id, workspace_files.size_bytes, modified_at
    from workspace_files join workspaces using (workspace_id)
    where workspace_id = ${workspaceId} and content_id = ${contentId}`.execute(db);
  return (
    rows[0] && {
      workspaceId,
      contentId,
      tenantId: rows[0].tenant_id,
      sizeBytes: Number(rows[0].size_bytes),
      modifiedAt: rows[0].modified_at,
    }
  );
}

/** The number of workspaces of a tenant, and what all of them have together. */
export async function usageOfTenant(
  db: Kysely<Schema>,
  tenantId: string,
): Promise<{ workspaces: number; bytes: number; entries: number }> {
  const { rows } = await sql<{ workspaces: string; bytes: string; entries: string }>`
    select count(*) as workspaces, coalesce(sum(size_bytes), 0) as bytes,
      coalesce(sum(entry_count), 0) as entries
    from workspaces where tenant_id = ${tenantId}`.execute(db);
  const { workspaces = 0, bytes = 0, entries = 0 } = rows[0] ?? {};
  return { workspaces: Number(workspaces), bytes: Number(bytes), entries: Number(entries) };
}

/** The number of entries of a workspace. */
export async function countEntries(db: Kysely<Schema>, workspaceId: string): Promise<number> {
  const { rows } = await sql<{ entry_count: number }>`
    select entry_count from workspaces where workspace_id = ${workspaceId}`.execute(db);
  return rows[0]?.entry_count ?? 0;
}

/**
 * Whether a path names a directory, or one of its own directories is a file or a symbolic link. Directories need no entry
 * of their own.
 */
export async function hasConflict(
  db: Kysely<Schema>,
  workspaceId: string,
  path: Buffer,
): Promise<boolean> {
  const { rows } = await sql`
    select from workspace_files where workspace_id = ${workspaceId}
      and ((path = any(${parentsOf(path)}) and kind <> 'directory')
        or (path = ${path} and kind = 'directory')
        or (path > ${below(path, '/')} and path < ${below(path, '0')}))
    limit 1`.execute(db);
  return rows.length > 0;
}

/** The paths of the directories that a path is in. */
function parentsOf(path: Buffer): Buffer[] {
  const slashes = [...path.entries()].filter(([, byte]) => byte === 0x2f);
  return slashes.map(([at]) => path.subarray(0, at));
}

/** `0` is the byte after `/`: everything between the two is in the directory. */
function below(path: Buffer, separator: '/' | '0'): Buffer {
  return Buffer.concat([path, Buffer.from(separator)]);
}

function workspaceOf(row: WorkspaceColumns): Workspace {
  return {
    workspaceId: row.workspace_id,
    appId: row.app_id,
    capsetId: row.capset_id,
    sizeBytes: Number(row.size_bytes),
    fileCount: row.file_count,
  };
}

function fileOf(row: FileColumns): WorkspaceFile {
  return {
    path: row.path,
    sizeBytes: Number(row.size_bytes),
    modifiedAt: row.modified_at,
    version: Number(row.version),
    content: contentOf(row),
  };
}

function contentOf({ path, object_key, content_id }: FileColumns): WorkspaceContent {
  if (object_key !== null) return { objectKey: object_key };
  if (content_id === null) throw new Error(`The file ${path.toString('hex')} has no content.`);
  return { contentId: content_id };
}
