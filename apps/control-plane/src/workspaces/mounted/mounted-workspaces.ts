import {
  LIMITS,
  ServiceError,
  type WorkspaceChanges,
  type WorkspaceCommit,
  type WorkspaceEntries,
  type WorkspaceEntriesQuery,
  type WorkspaceObjects,
  type WorkspaceObjectsRequest,
} from '@svc/contract';
import type { StageOutcome, Store, WorkspaceQuota } from '@svc/store';
import type { StoredChunks } from '../../chunks/stored-chunks.ts';
import { onObjects } from '../../objects/object-failures.ts';
import type { Objects } from '../../objects/open-objects.ts';
import { urlForWorkers, WORKER_URL_SECONDS } from '../../objects/urls-for-workers.ts';
import { REPLACED_SECONDS, type UploadTaker } from '../upload-taker.ts';
import { findMount, type MountRequest } from './find-mount.ts';
import { changesOf, entryOf, pathOf, textOf } from './wire.ts';

/** Extents with which a page of entries ends. The last entry may have many more. */
const PAGE_EXTENTS = 16_384;
/** Refused changes in the answer to a commit. */
const LISTED_REFUSALS = 1_000;

const FLUSH_LIMITS = {
  changes: LIMITS.workspaceFlushChanges,
  extents: LIMITS.workspaceFlushExtents,
};

export interface MountedWorkspacesParts {
  readonly store: Pick<Store, 'workspaces'>;
  readonly objects: Objects;
  readonly taker: Pick<UploadTaker, 'takeAll'>;
  readonly quota: WorkspaceQuota;
  readonly chunks: StoredChunks<MountRequest>;
}

/**
 * The workspaces of sandboxes, for the workers that mount and flush them. All methods throw ServiceError
 * `sandbox_not_found`, `stale_generation`, and `workspace_quota_exceeded` when the account has too many workspaces.
 */
export class MountedWorkspaces {
  /** The chunks with the contents of files. */
  readonly chunks: StoredChunks<MountRequest>;
  readonly #parts: MountedWorkspacesParts;

  constructor(parts: MountedWorkspacesParts) {
    this.#parts = parts;
    this.chunks = parts.chunks;
  }

  /** A page of entries. The first one shows the uploads that are complete. */
  async entries(
    request: MountRequest,
    query: Pick<WorkspaceEntriesQuery, 'after' | 'limit'>,
    signal: AbortSignal,
  ): Promise<WorkspaceEntries> {
    const { store, taker } = this.#parts;
    const mount = await findMount(store, request);
    if (query.after === undefined) {
      const uploading = await store.workspaces.findUploading(mount.tenantId);
      if (uploading.includes(mount.workspaceId)) {
        await onObjects(() => taker.takeAll(mount, signal));
      }
    }
    const { entries, isLast } = await store.workspaces.listEntries(mount.workspaceId, {
      after: query.after === undefined ? Buffer.alloc(0) : pathOf(query.after),
      limit: query.limit ?? LIMITS.workspacePage,
      extents: PAGE_EXTENTS,
    });
    const last = isLast ? undefined : entries.at(-1);
    return {
      entries: entries.map(entryOf),
      ...(last === undefined ? {} : { next: textOf(last.path) }),
    };
  }

  /** URLs for the contents of files that are plain objects. */
  async objects(
    request: MountRequest,
    { paths }: Pick<WorkspaceObjectsRequest, 'paths'>,
  ): Promise<WorkspaceObjects> {
    const { store, objects } = this.#parts;
    const { workspaceId } = await findMount(store, request);
    const found = await store.workspaces.findObjects(workspaceId, paths.map(pathOf));
    const urls = found.map(async ({ path, version, sizeBytes, objectKey }) => {
      const url = await objects.store.presignGet(objectKey, { expiresSeconds: WORKER_URL_SECONDS });
      return { path: textOf(path), version, size: sizeBytes, url: urlForWorkers(objects, url) };
    });
    return { objects: await Promise.all(urls) };
  }

  /**
   * Stages changes of a flush.
   * @throws ServiceError `workspace_path_invalid`, `validation_failed`, `file_not_found`, `workspace_flush_closed`,
   * `payload_too_large`
   */
  async stage(
    request: MountRequest,
    flushId: string,
    { changes }: Pick<WorkspaceChanges, 'changes'>,
  ): Promise<void> {
    const { store } = this.#parts;
    const { workspaceId } = await findMount(store, request);
    const flush = { flushId, workspaceId, vmId: request.vmId };
    const staged = await store.workspaces.stageChanges(flush, changesOf(changes), FLUSH_LIMITS);
    if (staged !== 'staged') throw refusalOf(staged);
  }

  /** Applies all staged changes of a flush. @throws ServiceError `workspace_flush_closed` */
  async commit(request: MountRequest, flushId: string): Promise<WorkspaceCommit> {
    const { store, quota } = this.#parts;
    const { tenantId, workspaceId } = await findMount(store, request);
    const commit = await store.workspaces.commitFlush(
      { flushId, workspaceId, tenantId, vmId: request.vmId },
      {
        ...quota,
        listed: LISTED_REFUSALS,
        graceSeconds: REPLACED_SECONDS,
      },
    );
    if (commit === undefined) throw new ServiceError('workspace_flush_closed');
    const { version, refusedCount, refused } = commit;
    return { version, refused_count: refusedCount, refused: [...refused] };
  }
}

function refusalOf(outcome: Exclude<StageOutcome, 'staged'>): ServiceError {
  if (outcome === 'closed') return new ServiceError('workspace_flush_closed');
  if (outcome === 'too_large') return new ServiceError('payload_too_large');
  return new ServiceError('file_not_found');
}
