import { randomUUID } from 'node:crypto';
import {
  LIMITS,
  type ListWorkspaceFilesResponse,
  type ListWorkspacesResponse,
  type PresignedUrl,
  ServiceError,
  type WorkspaceFilesQuery,
  type WorkspaceUsage,
} from '@svc/contract';
import {
  type ObjectStore,
  PRESIGNED_SECONDS,
  type SignedUrls,
  type UrlQuery,
} from '@svc/object-store';
import type { Store, Workspace, WorkspaceFile, WorkspaceQuota, WorkspaceScope } from '@svc/store';
import { onObjects } from '../objects/object-failures.ts';
import { type ObjectSource, objectSource } from '../objects/send-object.ts';
import type { ChunkedContents } from './chunked-content.ts';
import { endExpiredUploads } from './end-expired-uploads.ts';
import { uploadIdOf, uploadKey } from './object-keys.ts';
import type { UploadBytes } from './upload-bytes.ts';
import type { UploadTaker } from './upload-taker.ts';

/** Path of the URLs of files in chunks. */
export const WORKSPACE_FILES_PATH = '/workspace-files/';

const MIB = 1024 * 1024;

export interface WorkspacesParts {
  readonly store: Store;
  readonly objects: ObjectStore;
  readonly taker: UploadTaker;
  readonly contents: ChunkedContents;
  /** Signs the URLs of files in chunks. */
  readonly urls: SignedUrls;
  readonly quota: WorkspaceQuota;
  readonly limits: UploadBytes;
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
  async url(scope: WorkspaceScope, path: Buffer, signal: AbortSignal): Promise<PresignedUrl> {
    const { workspaceId, content } = await this.#file(scope, path, signal);
    const { objects, urls } = this.#parts;
    const url =
      content.objectKey === undefined
        ? urls.sign({
            method: 'GET',
            key: `${workspaceId}/${content.contentId}`,
            expires: Math.ceil(Date.now() / 1000) + PRESIGNED_SECONDS,
          })
        : await objects.presignGet(content.objectKey);
    return { url, expires_in: PRESIGNED_SECONDS };
  }

  /** The bytes of a file. @throws ServiceError `workspace_file_not_found` */
  async source(scope: WorkspaceScope, path: Buffer, signal: AbortSignal): Promise<ObjectSource> {
    const { workspaceId, content, ...file } = await this.#file(scope, path, signal);
    const { objects, contents } = this.#parts;
    if (content.objectKey !== undefined) return objectSource(objects, content.objectKey);
    return contents.source({ ...file, ...content, workspaceId, tenantId: scope.tenantId });
  }

  /**
   * The bytes of a file in chunks, for the bearer of a URL.
   * @throws ObjectStoreError `object_url_invalid`, `object_url_expired`; ServiceError `object_not_found` once the file has
   * another content
   */
  async sourceOfUrl(key: string, query: UrlQuery): Promise<ObjectSource> {
    const { store, urls, contents } = this.#parts;
    urls.verify('GET', key, query);
    const [workspaceId = '', contentId = ''] = key.split('/');
    const file = await store.workspaces.findContent(workspaceId, contentId);
    if (file === undefined) throw new ServiceError('object_not_found');
    return contents.source(file);
  }

  /**
   * A URL for one upload of a file, which appears when the upload is complete.
   * @throws ServiceError `workspace_path_invalid`, `workspace_quota_exceeded`, `workspace_path_conflict`, `too_many_uploads`,
   * `payload_too_large`
   */
  async upload(
    scope: WorkspaceScope,
    path: Buffer,
    size: number | undefined,
    signal: AbortSignal,
  ): Promise<PresignedUrl> {
    const { objects, limits } = this.#parts;
    if (path.length > LIMITS.storedPathBytes) throw new ServiceError('workspace_path_invalid');
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

  /** Whether the upload with this object may still become a file. */
  isOpenUpload(key: string): Promise<boolean> {
    return this.#parts.store.workspaces.isOpenUpload(uploadIdOf(key));
  }

  /** Deletes a file and its content. @throws ServiceError `workspace_file_not_found` */
  async deleteFile(scope: WorkspaceScope, path: Buffer, signal: AbortSignal): Promise<void> {
    const workspace = await this.#find(scope, signal);
    const isRemoved =
      workspace !== undefined &&
      (await this.#parts.store.workspaces.removeFile(workspace.workspaceId, path));
    if (!isRemoved) throw new ServiceError('workspace_file_not_found');
  }

  /** Deletes every file of a workspace with its content. @throws ServiceError `workspace_not_found` */
  async delete(scope: WorkspaceScope, signal: AbortSignal): Promise<void> {
    const { store, taker } = this.#parts;
    const workspace = await store.workspaces.find(scope);
    if (workspace === undefined) throw new ServiceError('workspace_not_found');
    const { workspaceId } = workspace;
    const uploading = await store.workspaces.findUploading(scope.tenantId);
    let isDone = (await store.workspaces.removeAllFiles(workspaceId)) > 0;
    if (uploading.includes(workspaceId)) {
      // They are closed now, so that the complete ones, which were files of the workspace too, are deleted.
      const hadUploads = await taker.deleteClosed({ ...scope, workspaceId }, signal);
      isDone ||= hadUploads;
    }
    if (!isDone) throw new ServiceError('workspace_not_found');
  }

  /** The size of a workspace; zero for one that does not exist. */
  async usage(scope: WorkspaceScope, signal: AbortSignal): Promise<WorkspaceUsage> {
    const { sizeBytes = 0, fileCount = 0 } = (await this.#find(scope, signal)) ?? {};
    return { total_size_mib: sizeBytes / MIB, file_count: fileCount };
  }

  /** Ends uploads whose URLs have expired. See {@link endExpiredUploads}. */
  endExpiredUploads(olderThanSeconds: number, limit: number, signal: AbortSignal): Promise<number> {
    return endExpiredUploads(this.#parts, olderThanSeconds, limit, signal);
  }

  async #file(
    scope: WorkspaceScope,
    path: Buffer,
    signal: AbortSignal,
  ): Promise<WorkspaceFile & Pick<Workspace, 'workspaceId'>> {
    const workspace = await this.#find(scope, signal);
    const file =
      workspace && (await this.#parts.store.workspaces.findFile(workspace.workspaceId, path));
    if (file === undefined || workspace === undefined) {
      throw new ServiceError('workspace_file_not_found');
    }
    return { ...file, workspaceId: workspace.workspaceId };
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

  #begin(scope: WorkspaceScope, path: Buffer, size: number | undefined, uploadId: string) {
    const { store, quota, limits } = this.#parts;
    return store.workspaces.beginUpload(
      {
        ...scope,
        uploadId,
        path,
        sizeBytes: size,
        expiresSeconds: PRESIGNED_SECONDS,
      },
      { ...quota, ...limits, openUploads: LIMITS.openUploads },
    );
  }
}

function refusalOf(refusal: 'over_quota' | 'too_many_uploads' | 'path_conflict'): ServiceError {
  if (refusal === 'over_quota') return new ServiceError('workspace_quota_exceeded');
  if (refusal === 'path_conflict') return new ServiceError('workspace_path_conflict');
  return new ServiceError(
    'too_many_uploads',
    'Complete the uploads that have begun, or wait. Say how large each is: one without a size counts as the largest that is allowed.',
  );
}

function recordOf({ path, sizeBytes, modifiedAt }: WorkspaceFile) {
  const text = path.toString();
  return {
    path: text,
    ...(Buffer.from(text).equals(path) ? {} : { path_base64: path.toString('base64url') }),
    size: sizeBytes,
    modified: modifiedAt.toISOString(),
  };
}
