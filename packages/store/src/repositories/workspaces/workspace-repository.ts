import type { Kysely } from 'kysely';
import type { Schema } from '../../schema.ts';
import * as commit from './commit.ts';
import * as empty from './empty.ts';
import * as entries from './entries.ts';
import * as extents from './extents.ts';
import * as lookup from './lookup.ts';
import * as mount from './mount.ts';
import * as removal from './removal.ts';
import * as replaced from './replaced.ts';
import type { Extent, Workspace, WorkspaceChange, WorkspaceFile, WorkspaceScope } from './scope.ts';
import * as stage from './stage.ts';
import * as take from './take.ts';
import * as uploads from './uploads.ts';

/** The files of workspaces, without their contents. Each method is described at the function that it calls. */
export class WorkspaceRepository {
  readonly #db: Kysely<Schema>;
  readonly #most: number;

  /** @param most workspaces of a tenant */
  constructor(db: Kysely<Schema>, most = Number.MAX_SAFE_INTEGER) {
    this.#db = db;
    this.#most = most;
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

  findContent(workspaceId: string, contentId: string): Promise<lookup.ContentOfFile | undefined> {
    return lookup.findContent(this.#db, workspaceId, contentId);
  }

  beginUpload(upload: uploads.NewUpload, limits: uploads.UploadLimits) {
    return uploads.beginUpload(this.#db, upload, limits, this.#most);
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

  giveUp(objectKey: string): Promise<void> {
    return take.giveUp(this.#db, objectKey);
  }

  limitReplaced(tenantId: string, mostBytes: number): Promise<void> {
    return replaced.limitReplaced(this.#db, tenantId, mostBytes);
  }

  closeUpload(upload: Pick<take.TakenUpload, 'uploadId' | 'workspaceId'>) {
    return take.closeUpload(this.#db, upload);
  }

  removeFile(workspaceId: string, path: Buffer): Promise<boolean> {
    return removal.removeFile(this.#db, workspaceId, path);
  }

  removeAllFiles(workspaceId: string): Promise<number> {
    return removal.removeAllFiles(this.#db, workspaceId);
  }

  removeEmpty(olderThanSeconds: number, limit: number): Promise<number> {
    return empty.removeEmpty(this.#db, olderThanSeconds, limit);
  }

  findMounted(
    workerId: string,
    vmId: string,
    endedSeconds: number,
  ): Promise<mount.MountedWorkspace | undefined> {
    return mount.findMounted(this.#db, workerId, vmId, endedSeconds);
  }

  open(scope: WorkspaceScope): Promise<string | undefined> {
    return mount.openWorkspace(this.#db, scope, this.#most);
  }

  listEntries(workspaceId: string, page: entries.EntryPage) {
    return entries.listEntries(this.#db, workspaceId, page);
  }

  findObjects(workspaceId: string, paths: readonly Buffer[]) {
    return entries.findObjects(this.#db, workspaceId, paths);
  }

  findExtents(workspaceId: string, contentId: string): Promise<Extent[]> {
    return extents.findExtents(this.#db, workspaceId, contentId);
  }

  stageChanges(
    flush: stage.Flush,
    changes: readonly WorkspaceChange[],
    limits: stage.FlushLimits,
  ): Promise<stage.StageOutcome> {
    return stage.stageChanges(this.#db, flush, changes, limits);
  }

  commitFlush(
    flush: stage.Flush & { readonly tenantId: string },
    limits: commit.CommitLimits,
  ): Promise<commit.Commit | undefined> {
    return commit.commitFlush(this.#db, flush, limits);
  }

  removeFinishedFlushes(olderThanSeconds: number, limit: number): Promise<number> {
    return stage.removeFinished(this.#db, olderThanSeconds, limit);
  }

  removeAbandonedFlushes(olderThanSeconds: number, limit: number): Promise<number> {
    return stage.removeAbandoned(this.#db, olderThanSeconds, limit);
  }
}
