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
 * @throws AggregateError that names the workspaces whose uploads could not be ended, after it has ended those of the others
 */
export async function endExpiredUploads(
  { store, taker }: EndExpiredUploadsParts,
  olderThanSeconds: number,
  limit: number,
  signal: AbortSignal,
): Promise<number> {
  using deadline = openDeadline(signal, UPLOADS_MS);
  const expired = await store.workspaces.findExpiredUploads(olderThanSeconds, limit);
  const failures = new Map<string, unknown>();
  for (const owner of expired) {
    try {
      await taker.takeAll(owner, deadline.signal);
      await store.workspaces.removeExpiredUploads(owner.workspaceId, olderThanSeconds);
    } catch (error) {
      deadline.signal.throwIfAborted();
      failures.set(owner.workspaceId, error);
    }
  }
  if (failures.size > 0) {
    const ids = [...failures.keys()].join(', ');
    throw new AggregateError(failures.values(), `cannot end the uploads of the workspaces ${ids}`);
  }
  return expired.length;
}
