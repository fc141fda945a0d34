import type { ObjectStore } from '@svc/object-store';
import { openDeadline, sleep } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { SESSION_OBJECTS } from './object-keys.ts';

const INTERVAL_MS = 2_000;
const COLLECTING_INTERVAL_MS = 600_000;
/** Longer than any upload. */
const GRACE_SECONDS = 3_600;
const BATCH = 1_000;
/** Pages of the listing that are compared with the ledger at a time; the next time goes on behind them. */
const PAGES = 20;
const CALL_MS = 60_000;

export interface SweepObjectsParts {
  readonly store: Pick<Store, 'sessionChunks' | 'objectDeletions'>;
  readonly objects: Pick<ObjectStore, 'delete' | 'list'>;
  readonly logger: Pick<FastifyBaseLogger, 'info' | 'warn'>;
}

/**
 * Deletes objects of sessions that nothing names any more, until the signal aborts: those that the ledger has given up, and
 * those that it does not know, such as that of an upload which ended after its chunk was given up. Any number of control planes may do so at once. It runs apart from the other sweep, so that a slow object store does
 * not delay that one.
 */
export async function sweepObjects(parts: SweepObjectsParts, signal: AbortSignal): Promise<void> {
  let collectedAt = Number.NEGATIVE_INFINITY;
  let after: string | undefined;
  while (!signal.aborted) {
    try {
      if (performance.now() - collectedAt > COLLECTING_INTERVAL_MS) {
        after = await removeUnknown(parts, after, signal);
        collectedAt = performance.now();
      }
      await deleteObjects(parts, signal);
    } catch (err) {
      if (signal.aborted) return;
      parts.logger.warn({ err }, 'cannot remove unused objects; will try again');
    }
    await sleep(INTERVAL_MS, signal, { ref: false });
  }
}

/** Returns where the next pass goes on. */
async function removeUnknown(
  { store, objects, logger }: SweepObjectsParts,
  start: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  let after = start;
  for (let page = 0; page < PAGES; page += 1) {
    const listing = { prefix: SESSION_OBJECTS, after, limit: BATCH };
    const { objects: found, next } = await within(signal, (limit) => objects.list(listing, limit));
    const newest = Date.now() - GRACE_SECONDS * 1000;
    const keys = found.filter(({ modifiedAt }) => +modifiedAt < newest).map(({ key }) => key);
    const known = new Set(await store.sessionChunks.known(keys));
    const unknown = keys.filter((key) => !known.has(key));
    if (unknown.length > 0) {
      await within(signal, (limit) => objects.delete(unknown, limit));
      logger.info({ objects: unknown.length }, 'removed objects that the ledger does not know');
    }
    after = next;
    if (next === undefined) break;
  }
  return after;
}

async function deleteObjects(
  { store, objects }: SweepObjectsParts,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const keys = await store.objectDeletions.next(BATCH);
    if (keys.length === 0) return;
    await within(signal, (limit) => objects.delete(keys, limit));
    await store.objectDeletions.done(keys);
  }
}

async function within<T>(
  signal: AbortSignal,
  call: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  using deadline = openDeadline(signal, CALL_MS);
  return call(deadline.signal);
}
