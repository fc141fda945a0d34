import { isObjectStoreError, MAX_PAGE, type ObjectInfo, type ObjectStore } from '@svc/object-store';
import { Slots } from '@svc/service-kit/concurrency';
import { FailureLogs } from '@svc/service-kit/logging';
import type { Store, WorkspaceQuota } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { newFileKey, uploadIdOf, uploadsPrefix, type WorkspaceOwner } from './object-keys.ts';
import type { UploadBytes } from './upload-bytes.ts';

/** Uploads that become files at the same time. */
const AT_ONCE = 8;
const DELETE_MS = 120_000;
/** Longer than the copy of the largest object. */
const RESERVED_SECONDS = 4 * 3_600;
/** Longer than any URL for the object of a replaced file is valid. */
export const REPLACED_SECONDS = 3_600;

export interface UploadTakerParts {
  readonly store: Store;
  readonly objects: ObjectStore;
  readonly logger: FastifyBaseLogger;
  readonly quota: WorkspaceQuota;
  readonly limits: UploadBytes;
}

/**
 * Makes complete uploads files. Nobody reports that an upload is complete: it is when its object exists. The object is
 * copied first, because the URL with which it was uploaded may still be valid.
 *
 * Any number of control planes may take the same upload: each makes a copy, and one of them commits its own. A copy that
 * was not committed, for whatever reason, is deleted later, because its key was reserved before.
 */
export class UploadTaker {
  readonly #parts: UploadTakerParts;
  /** By account, which can upload as much that becomes no file as it likes. */
  readonly #failures = new FailureLogs();
  readonly #undeleted = new FailureLogs();

  constructor(parts: UploadTakerParts) {
    this.#parts = parts;
  }

  /** Takes every complete upload of a workspace, and deletes uploads that can become no file. Returns their number. */
  async takeAll(owner: WorkspaceOwner, signal: AbortSignal): Promise<number> {
    const { store, objects, limits } = this.#parts;
    const prefix = uploadsPrefix(owner);
    const slots = new Slots(AT_ONCE);
    let count = 0;
    for (let after: string | undefined; ; ) {
      const page = await objects.list({ prefix, after, limit: MAX_PAGE }, signal);
      const taken = page.objects.map((object) =>
        slots.run(() => this.#take(owner, object, signal), signal),
      );
      const failed = (await Promise.allSettled(taken)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      count += page.objects.length;
      if (page.objects.length > 0) {
        await store.workspaces.limitReplaced(owner.tenantId, limits.pendingBytes);
      }
      after = page.next;
      if (after === undefined) return count;
    }
  }

  /**
   * Deletes the uploads of a workspace, all of which are closed. False if there are none. True, with a line in the log, if the
   * object store fails: then they are deleted some time after their URLs have expired.
   */
  async deleteClosed(owner: WorkspaceOwner, signal: AbortSignal): Promise<boolean> {
    try {
      return (await this.takeAll(owner, signal)) > 0;
    } catch (err) {
      if (!isObjectStoreError(err)) throw err;
      this.#undeleted.note(owner.tenantId, (omitted) =>
        this.#parts.logger.warn(
          { err, workspace: owner.workspaceId, omitted },
          'uploads of a deleted workspace are deleted later',
        ),
      );
      return true;
    }
  }

  async #take(owner: WorkspaceOwner, upload: ObjectInfo, signal: AbortSignal): Promise<void> {
    const { store, objects, quota, limits } = this.#parts;
    const uploadId = uploadIdOf(upload.key);
    if (upload.size > limits.uploadBytes) {
      // S3 enforces no limit of its own for a URL without a size. A copy might take too long, again and again.
      await store.workspaces.closeUpload({ ...owner, uploadId });
      this.#log(owner, { uploadId, outcome: 'too_large', size: upload.size });
    } else if (await store.workspaces.isOpenUpload(uploadId)) {
      const objectKey = newFileKey(owner);
      await store.workspaces.reserve(objectKey, RESERVED_SECONDS);
      if (!(await this.#copy(upload, objectKey, signal))) return;
      const outcome = await store.workspaces.takeUpload(
        {
          ...owner,
          uploadId,
          objectKey,
          sizeBytes: upload.size,
          modifiedAt: upload.modifiedAt,
        },
        { ...quota, graceSeconds: REPLACED_SECONDS },
      );
      if (outcome !== 'taken') {
        await store.workspaces.giveUp(objectKey);
        this.#log(owner, { uploadId, outcome });
      }
    }
    // Also for a client that is gone: nothing counts the bytes of an upload that is closed.
    await objects.delete([upload.key], AbortSignal.timeout(DELETE_MS));
  }

  #log({ tenantId }: WorkspaceOwner, fields: object): void {
    this.#failures.note(tenantId, (omitted) =>
      this.#parts.logger.info({ ...fields, omitted }, 'an upload became no file'),
    );
  }

  /** False when the upload is no longer there as it was listed: it is being taken or made again. */
  async #copy(upload: ObjectInfo, objectKey: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#parts.objects.copy(upload.key, objectKey, { etag: upload.etag, signal });
      return true;
    } catch (error) {
      if (isObjectStoreError(error, 'object_not_found')) return false;
      if (isObjectStoreError(error, 'object_changed')) return false;
      throw error;
    }
  }
}
