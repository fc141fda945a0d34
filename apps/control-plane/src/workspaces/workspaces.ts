import { randomUUID } from 'node:crypto';
import {
  checkWorkspacePath,
  LIMITS,
  type ListWorkspaceFilesResponse,
  type ListWorkspacesResponse,
  type PresignedUrl,
  ServiceError,
  type WorkspaceFilesQuery,
  type WorkspaceUsage,
} from '@svc/contract';
import { type ObjectStore, PRESIGNED_SECONDS } from '@svc/object-store';
import type { Store, Workspace, WorkspaceFile, WorkspaceScope } from '@svc/store';
import { onObjects } from '../objects/object-failures.ts';
import { uploadKey } from './object-keys.ts';
import { tidyWorkspaces } from './tidy-workspaces.ts';
import type { UploadTaker } from './upload-taker.ts';

const MIB = 1024 * 1024;
const RETRY_AFTER_SECONDS = '60';

export interface WorkspacesParts {
  readonly store: Store;
  readonly objects: ObjectStore;
  readonly taker: UploadTaker;
  readonly limits: { readonly workspaceBytes: number; readonly uploadBytes: number };
}

/** Persistent files of tenants. Every operation sees the uploads that were complete before it began. */
export class Workspaces {
  readonly #parts: WorkspacesParts;

  constructor(parts: WorkspacesParts) {
    this.#parts = parts;
  }

  /** The workspaces that have files. */
  async list(tenantId: string, signal: AbortSignal): Promise<ListWorkspacesResponse> {
    await this.#takeUploads(tenantId, undefined, signal);
    const found = await this.#parts.store.workspaces.list(tenantId);
    const workspaces = found
      .filter(({ fileCount }) => fileCount > 0)
      .map(({ appId, capsetId, sizeBytes }) => ({
        app_id: appId,
        capset_id: capsetId,
        size_bytes: sizeBytes,
      }));
    return { workspaces };
  }

  /** One page of files in the order of their paths' bytes; empty for a workspace that does not exist. */
  async files(
    scope: WorkspaceScope,
    query: WorkspaceFilesQuery,
    signal: AbortSignal,
  ): Promise<ListWorkspaceFilesResponse> {
    const { prefix = '', limit = LIMITS.pageDefault, token = '' } = query;
    const workspace = await this.#find(scope, signal);
    if (workspace === undefined) return { files: [] };
    const found = await this.#parts.store.workspaces.listFiles(workspace.workspaceId, {
      prefix: Buffer.from(prefix),
      after: Buffer.from(token, 'base64url'),
      limit: limit + 1,
    });
    const files = found.slice(0, limit);
    const page = { files: files.map(recordOf) };
    const last = found.length > limit ? files.at(-1) : undefined;
    return last === undefined ? page : { ...page, next_token: last.path.toString('base64url') };
  }

  /** A URL for the content of a file. @throws ServiceError `workspace_file_not_found` */
  async url(scope: WorkspaceScope, path: string, signal: AbortSignal): Promise<PresignedUrl> {
    const { objectKey } = await this.#file(scope, path, signal);
    const url = await this.#parts.objects.presignGet(objectKey);
    return { url, expires_in: PRESIGNED_SECONDS };
  }

  /** Key of the object with the content of a file. @throws ServiceError `workspace_file_not_found` */
  async objectKey(scope: WorkspaceScope, path: string, signal: AbortSignal): Promise<string> {
    return (await this.#file(scope, path, signal)).objectKey;
  }

  /**
   * A URL for one upload of a file, which appears when the upload is complete.
   * @throws ServiceError `workspace_quota_exceeded`, `workspace_path_conflict`, `too_many_uploads`, `payload_too_large`
   */
  async upload(
    scope: WorkspaceScope,
    path: string,
    size: number | undefined,
    signal: AbortSignal,
  ): Promise<PresignedUrl> {
    checkWorkspacePath(path);
    const { objects, limits } = this.#parts;
    if (size !== undefined && size > limits.uploadBytes)
      throw new ServiceError('payload_too_large');
    const uploadId = randomUUID();
    let begun = await this.#begin(scope, path, size, uploadId);
    if (begun === 'too_many_uploads') {
      // Complete ones do not count once they are files.
      await this.#takeUploads(scope.tenantId, undefined, signal);
      begun = await this.#begin(scope, path, size, uploadId);
    }
    if (typeof begun === 'string') throw refusalOf(begun);
    const key = uploadKey({ ...scope, ...begun }, uploadId);
    const url = await objects.presignPut(key, size === undefined ? {} : { size });
    return { url, expires_in: PRESIGNED_SECONDS };
  }

  /** Deletes a file and its content. @throws ServiceError `workspace_file_not_found` */
  async deleteFile(scope: WorkspaceScope, path: string, signal: AbortSignal): Promise<void> {
    checkWorkspacePath(path);
    const workspace = await this.#find(scope, signal);
    const key =
      workspace &&
      (await this.#parts.store.workspaces.removeFile(workspace.workspaceId, Buffer.from(path)));
    if (key === undefined) throw new ServiceError('workspace_file_not_found');
  }

  /** Deletes every file of a workspace with its content. @throws ServiceError `workspace_not_found` */
  async delete(scope: WorkspaceScope, signal: AbortSignal): Promise<void> {
    const workspace = await this.#find(scope, signal);
    const keys =
      workspace && (await this.#parts.store.workspaces.removeAllFiles(workspace.workspaceId));
    if (keys === undefined || keys.length === 0) throw new ServiceError('workspace_not_found');
  }

  /** The size of a workspace; zero for one that does not exist. */
  async usage(scope: WorkspaceScope, signal: AbortSignal): Promise<WorkspaceUsage> {
    const { sizeBytes = 0, fileCount = 0 } = (await this.#find(scope, signal)) ?? {};
    return { total_size_mib: sizeBytes / MIB, file_count: fileCount };
  }

  /** Deletes what no file uses any more. */
  tidy(signal: AbortSignal): Promise<void> {
    return tidyWorkspaces(this.#parts, signal);
  }

  async #file(scope: WorkspaceScope, path: string, signal: AbortSignal): Promise<WorkspaceFile> {
    checkWorkspacePath(path);
    const workspace = await this.#find(scope, signal);
    const file =
      workspace &&
      (await this.#parts.store.workspaces.findFile(workspace.workspaceId, Buffer.from(path)));
    if (file === undefined) throw new ServiceError('workspace_file_not_found');
    return file;
  }

  async #find(scope: WorkspaceScope, signal: AbortSignal): Promise<Workspace | undefined> {
    const { workspaces } = this.#parts.store;
    const workspace = await workspaces.find(scope);
    if (workspace === undefined) return undefined;
    const { workspaceId } = workspace;
    const taken = await this.#takeUploads(scope.tenantId, workspaceId, signal);
    return taken ? workspaces.find(scope) : workspace;
  }

  /** Takes the uploads of one workspace, or of all. True when there were any. */
  async #takeUploads(
    tenantId: string,
    only: string | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { store, taker } = this.#parts;
    const uploading = await store.workspaces.findUploading(tenantId);
    const wanted = uploading.filter((id) => only === undefined || id === only);
    for (const workspaceId of wanted) {
      await onObjects(() => taker.takeAll({ tenantId, workspaceId }, signal));
    }
    return wanted.length > 0;
  }

  #begin(scope: WorkspaceScope, path: string, size: number | undefined, uploadId: string) {
    const { store, limits } = this.#parts;
    return store.workspaces.beginUpload(
      {
        ...scope,
        uploadId,
        path: Buffer.from(path),
        sizeBytes: size,
        expiresSeconds: PRESIGNED_SECONDS,
      },
      { tenantBytes: limits.workspaceBytes, openUploads: LIMITS.openUploads },
    );
  }
}

function refusalOf(refusal: 'over_quota' | 'too_many_uploads' | 'path_conflict'): ServiceError {
  if (refusal === 'over_quota') return new ServiceError('workspace_quota_exceeded');
  if (refusal === 'path_conflict') return new ServiceError('workspace_path_conflict');
  return new ServiceError('too_many_uploads', undefined, {
    headers: { 'retry-after': RETRY_AFTER_SECONDS },
  });
}

function recordOf({ path, sizeBytes, modifiedAt }: WorkspaceFile) {
  return { path: path.toString(), size: sizeBytes, modified: modifiedAt.toISOString() };
}
