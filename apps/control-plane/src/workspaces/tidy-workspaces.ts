import type { ObjectStore } from '@svc/object-store';
import type { Store } from '@svc/store';
import type { UploadTaker } from './upload-taker.ts';

/** Objects deleted in one pass. */
const OBJECTS = 1000;
/** Workspaces with expired uploads in one pass. */
const WORKSPACES = 20;
/** Longer than any request that was begun with a URL before it expired. */
const UPLOAD_SECONDS = 86_400;
/** How long a workspace without files is kept. */
const EMPTY_SECONDS = 7 * 86_400;

export interface TidyParts {
  readonly store: Store;
  readonly objects: ObjectStore;
  readonly taker: UploadTaker;
}

/**
 * Deletes the objects that no file uses any more, and ends uploads whose URLs have expired. Several control planes may do
 * so at once.
 */
export async function tidyWorkspaces(parts: TidyParts, signal: AbortSignal): Promise<void> {
  const { store, objects, taker } = parts;
  const discarded = await store.workspaces.claimDiscarded(OBJECTS);
  if (discarded.length > 0) {
    await objects.delete(discarded, signal);
    await store.workspaces.forgetDiscarded(discarded);
  }
  const expired = await store.workspaces.findExpiredUploads(UPLOAD_SECONDS, WORKSPACES);
  for (const owner of expired) {
    await taker.takeAll(owner, signal);
    await store.workspaces.removeExpiredUploads(owner.workspaceId, UPLOAD_SECONDS);
  }
  await store.workspaces.removeEmpty(EMPTY_SECONDS, WORKSPACES);
}
