import type { Kysely } from 'kysely';
import type { Schema } from '../../schema.ts';
import * as discarded from './discarded.ts';
import * as lookup from './lookup.ts';
import * as removal from './removal.ts';
import type { Workspace, WorkspaceFile, WorkspaceScope } from './scope.ts';
import * as take from './take.ts';
import * as uploads from './uploads.ts';

/** The files of workspaces, without their contents. Each method is described at the function that it calls. */
export class WorkspaceRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  list(tenantId: string): Promise<Workspace[]> {
    return lookup.listWorkspaces(this.#db, tenantId);
  }

  find(scope: WorkspaceScope): Promise<Workspace | undefined> {
    return lookup.findWorkspace(this.#db, scope);
  }

  listFiles(
    workspaceId: string,
    page: { readonly prefix: Buffer; readonly after: Buffer; readonly limit: number },
  ): Promise<WorkspaceFile[]> {
    return lookup.listFiles(this.#db, workspaceId, page);
  }

  findFile(workspaceId: string, path: Buffer): Promise<WorkspaceFile | undefined> {
    return lookup.findFile(this.#db, workspaceId, path);
  }

  beginUpload(upload: uploads.NewUpload, limits: uploads.UploadLimits) {
    return uploads.beginUpload(this.#db, upload, limits);
  }

  isOpenUpload(uploadId: string): Promise<boolean> {
    return uploads.isOpenUpload(this.#db, uploadId);
  }

  findUploading(tenantId: string): Promise<string[]> {
    return uploads.findUploading(this.#db, tenantId);
  }

  findExpiredUploads(olderThanSeconds: number, limit: number) {
    return uploads.findExpired(this.#db, olderThanSeconds, limit);
  }

  removeExpiredUploads(workspaceId: string, olderThanSeconds: number): Promise<void> {
    return uploads.removeExpired(this.#db, workspaceId, olderThanSeconds);
  }

  reserve(objectKey: string, seconds: number): Promise<void> {
    return take.reserve(this.#db, objectKey, seconds);
  }

  takeUpload(upload: take.TakenUpload, limits: take.TakeLimits): Promise<take.TakeOutcome> {
    return take.takeUpload(this.#db, upload, limits);
  }

  removeFile(workspaceId: string, path: Buffer): Promise<string | undefined> {
    return removal.removeFile(this.#db, workspaceId, path);
  }

  removeAllFiles(workspaceId: string): Promise<string[]> {
    return removal.removeAllFiles(this.#db, workspaceId);
  }

  claimDiscarded(limit: number): Promise<string[]> {
    return discarded.claimDiscarded(this.#db, limit);
  }

  forgetDiscarded(objectKeys: readonly string[]): Promise<void> {
    return discarded.forgetDiscarded(this.#db, objectKeys);
  }

  removeEmpty(olderThanSeconds: number, limit: number): Promise<number> {
    return discarded.removeEmpty(this.#db, olderThanSeconds, limit);
  }
}
