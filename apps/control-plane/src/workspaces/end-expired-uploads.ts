import { openDeadline } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import type { UploadTaker } from './upload-taker.ts';

/** For all of them: complete ones are copied. */
const UPLOADS_MS = 600_000;

export interface EndExpiredUploadsParts {
  readonly store: Pick<Store, 'workspaces'>;
  readonly taker: Pick<UploadTaker, 'takeAll'>;
}

/**
 * Ends the uploads of up to `limit` workspaces whose URLs expired longer ago than this. Complete ones become files.
 * Returns the number of workspaces. Several control planes may do so at once.
 */
export async function endExpiredUploads(
  { store, taker }: EndExpiredUploadsParts,
  olderThanSeconds: number,
  limit: number,
  signal: AbortSignal,
): Promise<number> {
  using deadline = openDeadline(signal, UPLOADS_MS);
  const expired = await store.workspaces.findExpiredUploads(olderThanSeconds, limit);
  for (const owner of expired) {
    await taker.takeAll(owner, deadline.signal);
    await store.workspaces.removeExpiredUploads(owner.workspaceId, olderThanSeconds);
  }
  return expired.length;
}
