import { WORKER_TIMES } from '@svc/contract';
import { sleep } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { Retention } from '../retention/retention.ts';
import type { LostWorkers } from './lost-workers.ts';

const INTERVAL_MS = 10_000;
const RETENTION_INTERVAL_MS = 600_000;

const MOST_ARE_SILENT =
  'most workers are silent, so none is given up; look at what they share, such as the load balancer or a certificate, ' +
  'or run `svc worker rm --lost` for each that is gone for good';

/** What the sweeper works on. */
export interface SweeperParts {
  readonly store: Store;
  readonly lostWorkers: Pick<LostWorkers, 'givenUp' | 'noteOutage'>;
  readonly retention: Pick<Retention, 'pass'>;
  readonly logger: FastifyBaseLogger;
}

/** Gives up the sandboxes of lost workers and removes data whose time is over, until the signal aborts. */
export async function sweep(
  { store, lostWorkers, retention, logger }: SweeperParts,
  signal: AbortSignal,
): Promise<void> {
  let retentionDue = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    try {
      const { lost, held } = await lostWorkers.givenUp();
      await giveUp(lost, store, logger);
      if (held.length > 0) logger.error({ workers: held }, MOST_ARE_SILENT);
      await store.agentSecrets.removeOrphans();
      await closeOrphans(store, logger);
      await endStaleUpdates(store, logger);
    } catch (err) {
      lostWorkers.noteOutage();
      logger.warn({ err }, 'sweep failed; the next one will try again');
    }
    // What is left over is due at once.
    if (performance.now() >= retentionDue && (await retention.pass(signal))) {
      retentionDue = performance.now() + RETENTION_INTERVAL_MS;
    }
    await sleep(INTERVAL_MS, signal, { ref: false });
  }
}

async function closeOrphans(store: Store, logger: FastifyBaseLogger): Promise<void> {
  const closed = await store.sessions.closeOrphans();
  if (closed > 0) logger.warn({ sessions: closed }, 'ended sessions whose start was interrupted');
}

async function endStaleUpdates(store: Store, logger: FastifyBaseLogger): Promise<void> {
  const expired = await store.configUpdates.endStale();
  if (expired > 0) logger.warn({ expired }, 'gave up notices of rotated secrets after their time');
}

async function giveUp(
  lost: readonly string[],
  store: Store,
  logger: FastifyBaseLogger,
): Promise<void> {
  for (const workerId of lost) {
    const entries = await store.sandboxes.entriesOf(workerId);
    logger.warn({ workerId, sandboxes: entries.length }, 'worker lost; ending its sandboxes');
    for (const { vm_id: vmId, generation } of entries) {
      // Nothing, once the worker is heard again.
      await store.sandboxes.endLost({ vmId, generation, silentMs: WORKER_TIMES.lostMs });
    }
  }
}
