import type { Readable } from 'node:stream';
import { ServiceError } from '@svc/contract';
import type { ObjectStore, PutOptions } from '@svc/object-store';
import type { Workspaces } from '../../workspaces/workspaces.ts';

const DELETE_MS = 60_000;

export interface UploadPutterParts {
  readonly store: Pick<ObjectStore, 'put' | 'delete'>;
  readonly workspaces: Pick<Workspaces, 'isOpenUpload'>;
}

/**
 * Stores what customers upload to workspaces. A URL is for one upload: it accepts none once that has become a file, and one
 * ends another that is in progress, so that a URL never has the bytes of several.
 */
export class UploadPutter {
  readonly #parts: UploadPutterParts;
  readonly #latest = new Map<string, AbortController>();

  constructor(parts: UploadPutterParts) {
    this.#parts = parts;
  }

  /** Stores an upload. @throws ServiceError `object_url_expired`; what `put` of an object store throws */
  async put(key: string, body: Readable, { size, signal }: PutOptions): Promise<void> {
    const { store, workspaces } = this.#parts;
    this.#latest.get(key)?.abort(uploadEnded());
    const own = new AbortController();
    this.#latest.set(key, own);
    try {
      if (!(await workspaces.isOpenUpload(key))) throw uploadEnded();
      await store.put(key, body, { size, signal: AbortSignal.any([signal, own.signal]) });
      // Its content, or an earlier one, has become a file meanwhile, which has a copy. A client that is gone changes nothing.
      if (!(await workspaces.isOpenUpload(key))) {
        await store.delete([key], AbortSignal.timeout(DELETE_MS));
      }
    } finally {
      body.destroy();
      if (this.#latest.get(key) === own) this.#latest.delete(key);
    }
  }
}

function uploadEnded(): ServiceError {
  return new ServiceError(
    'object_url_expired',
    'The URL was used for another upload, or its workspace was deleted. Ask for a new URL.',
  );
}
