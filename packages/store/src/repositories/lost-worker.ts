import { WORKER_TIMES } from '@svc/contract';
import { type RawBuilder, sql } from 'kysely';
import { ago } from '../remove-batch.ts';

/**
 * Whether the worker of a row of `workers` is lost: it has been silent for `silentMs` milliseconds by the clock of the database,
 * and for at least {@link WORKER_TIMES}.restartMs if its last report announced a restart in place. One that ends its sandboxes
 * without the order of an operator announces the same. It reports each end, so only what it could not end waits longer.
 */
export function isLost(silentMs: number): RawBuilder<boolean> {
  // `least` ignores null.
  return sql<boolean>`(workers.heartbeat_at < least(${ago(silentMs / 1000)},
    case when workers.draining and not workers.drain_requested
      then ${ago(WORKER_TIMES.restartMs / 1000)} end))`;
}
