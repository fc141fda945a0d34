import type { ObjectStore } from '@svc/object-store';
import { openDeadline, sleep } from '@svc/service-kit/concurrency';
import type { FastifyBaseLogger } from 'fastify';
import type { Workspaces } from '../workspaces/workspaces.ts';

const INTERVAL_MS = 60_000;
const LEFTOVERS_INTERVAL_MS = 3_600_000;
/** For one task. */
const TASK_MS = 600_000;

export interface TidyOptions {
  readonly store: ObjectStore;
  readonly workspaces: Pick<Workspaces, 'tidy'>;
  readonly logger: FastifyBaseLogger;
}

/**
 * Says at the start whether the object store can be reached, then deletes what nothing uses any more, until the signal
 * aborts: objects of workspaces every minute, what broken uploads left behind every hour. A failure is logged; requests
 * that need the store report theirs.
 */
export async function tidyObjects(options: TidyOptions, signal: AbortSignal): Promise<void> {
  const { store, workspaces, logger } = options;
  await attempt('the object store cannot be reached; see `svc doctor`', (s) => store.ping(s));
  let leftoversAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    await attempt('unused objects were not deleted', (s) => workspaces.tidy(s));
    if (performance.now() - leftoversAt > LEFTOVERS_INTERVAL_MS) {
      leftoversAt = performance.now();
      await attempt('leftovers of uploads were not removed', (s) => store.removeLeftovers(s));
    }
    await sleep(INTERVAL_MS, signal, { ref: false });
  }

  async function attempt(message: string, run: (signal: AbortSignal) => Promise<void>) {
    using deadline = openDeadline(signal, TASK_MS);
    try {
      await run(deadline.signal);
    } catch (err) {
      if (!signal.aborted) logger.warn({ err }, message);
    }
  }
}
