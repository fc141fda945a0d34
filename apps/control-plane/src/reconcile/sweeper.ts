import { LIMITS, WORKER_TIMES } from '@svc/contract';
import { sleep } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';

const INTERVAL_MS = 10_000;
const CLEANING_INTERVAL_MS = 600_000;
/** Longer than any upload with the commit of its turn. */
const UPLOAD_SECONDS = 3_600;

/**
 * Gives up the sandboxes of lost workers and removes expired rows, until the signal aborts.
 *
 * A worker counts as lost only if its heartbeats could have been received all the time. After a start, or an
 * outage of the database, the full time begins again for every worker, since its VMs may have survived.
 */
export async function sweep(
  store: Store,
  logger: FastifyBaseLogger,
  signal: AbortSignal,
  now: () => number = () => performance.now(),
): Promise<void> {
  let cleanedAt = 0;
  let listeningSince = now();
  while (!signal.aborted) {
    try {
      const lost = await store.workers.findLost(WORKER_TIMES.lostMs);
      if (now() - listeningSince >= WORKER_TIMES.lostMs) await giveUp(lost, store, logger);
      await store.agentSecrets.removeOrphans();
      await closeOrphans(store, logger);
      if (Date.now() - cleanedAt > CLEANING_INTERVAL_MS) {
        await store.otp.removeExpired();
        await store.requestBudgets.removeExpired();
        await store.idempotency.removeExpired(LIMITS.idempotencySeconds);
        await store.sessionFiles.removeOrphans(UPLOAD_SECONDS);
        cleanedAt = Date.now();
      }
    } catch (err) {
      listeningSince = now();
      logger.warn({ err }, 'sweep failed; the next one will try again');
    }
    await sleep(INTERVAL_MS, signal, { ref: false });
  }
}

async function closeOrphans(store: Store, logger: FastifyBaseLogger): Promise<void> {
  const closed = await store.sessions.closeOrphans();
  if (closed > 0) logger.warn({ sessions: closed }, 'ended sessions whose start was interrupted');
}

async function giveUp(
  lost: readonly string[],
  store: Store,
  logger: FastifyBaseLogger,
): Promise<void> {
  for (const workerId of lost) {
    const entries = await store.sandboxes.entriesFor(workerId, []);
    logger.warn({ workerId, sandboxes: entries.length }, 'worker lost; ending its sandboxes');
    for (const { vm_id: vmId, generation } of entries) {
      await store.sandboxes.end({ vmId, generation, reason: 'worker_lost' });
    }
  }
}
