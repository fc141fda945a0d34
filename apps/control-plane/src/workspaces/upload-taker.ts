import { isObjectStoreError, MAX_PAGE, type ObjectInfo, type ObjectStore } from '@svc/object-store';
import { Slots } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { newFileKey, uploadIdOf, uploadsPrefix, type WorkspaceOwner } from './object-keys.ts';

/** Uploads that become files at the same time. */
const AT_ONCE = 8;
/** Longer than the copy of the largest object. */
const RESERVED_SECONDS = 4 * 3_600;
/** Longer than any URL for the object of a replaced file is valid. */
export const REPLACED_SECONDS = 3_600;

export interface UploadTakerParts {
  readonly store: Store;
  readonly objects: ObjectStore;
  readonly logger: FastifyBaseLogger;
  /** Bytes of all workspaces of a tenant. */
  readonly tenantBytes: number;
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

  constructor(parts: UploadTakerParts) {
    this.#parts = parts;
  }

  /** Takes every complete upload of a workspace, and deletes uploads that can become no file. */
  async takeAll(owner: WorkspaceOwner, signal: AbortSignal): Promise<void> {
    const prefix = uploadsPrefix(owner);
    const slots = new Slots(AT_ONCE);
    for (let after: string | undefined; ; ) {
      const page = await this.#parts.objects.list({ prefix, after, limit: MAX_PAGE }, signal);
      const taken = page.objects.map((object) =>
        slots.run(() => this.#take(owner, object, signal), signal),
      );
      const failed = (await Promise.allSettled(taken)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      after = page.next;
      if (after === undefined) return;
    }
  }

  async #take(owner: WorkspaceOwner, upload: ObjectInfo, signal: AbortSignal): Promise<void> {
    const { store, objects, logger, tenantBytes } = this.#parts;
    const uploadId = uploadIdOf(upload.key);
    if (await store.workspaces.isOpenUpload(uploadId)) {
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
        { tenantBytes, graceSeconds: REPLACED_SECONDS },
      );
      if (outcome !== 'taken') logger.info({ uploadId, outcome }, 'an upload became no file');
    }
    await objects.delete([upload.key], signal);
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
