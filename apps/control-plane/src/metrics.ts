import { ACTIVE_STATES, END_REASONS, isServiceError, WORKER_TIMES } from '@svc/contract';
import { Gauge, Histogram, type Registry, SingleFlight } from '@svc/service-kit';
import type { Store } from '@svc/store';

/** Long enough for several scrapes, in seconds. */
const ENDED_WITHIN_SECONDS = 300;
/** Up to the deadline, after which a statement fails. */
const WAIT_BUCKETS = [0.001, 0.01, 0.1, 0.5, 1, 2, 5];

/** Times how long statements wait for a connection to the database. */
export function createPoolMetrics(registry: Registry): Histogram<'pool'> {
  return new Histogram({
    name: 'svc_database_wait_seconds',
    help: 'How long statements and transactions waited for a connection, by the kind of work.',
    labelNames: ['pool'],
    buckets: WAIT_BUCKETS,
    registers: [registry],
  });
}

/**
 * Reads what the ledger says of sandboxes and workers at each scrape, so that every control plane reports the same.
 * While the database is down, `svc_database_up` is 0 and the last values stay.
 */
export function registerLedgerMetrics(store: Store, registry: Registry): void {
  const scrape = new SingleFlight<void>();
  // Each metric asks for the values of a scrape, which are read once.
  const collect = () => scrape.run(read);
  const registers = [registry];
  const up = new Gauge({
    name: 'svc_database_up',
    help: 'Whether the database answered this scrape.',
    registers,
    collect,
  });
  const sandboxes = new Gauge({
    name: 'svc_sandboxes',
    help: 'Sandboxes in the ledger that are not destroyed, by state.',
    labelNames: ['state'],
    registers,
    collect,
  });
  const ended = new Gauge({
    name: 'svc_sandboxes_ended_recently',
    help: 'Sandboxes that ended in the last five minutes, by reason.',
    labelNames: ['reason'],
    registers,
    collect,
  });
  const quarantined = new Gauge({
    name: 'svc_sandboxes_quarantined',
    help: 'Sandboxes that workers hold and a restored ledger does not know.',
    registers,
    collect,
  });
  const workers = new Gauge({
    name: 'svc_workers',
    help: 'Workers in the ledger, by whether they have sent a recent heartbeat.',
    labelNames: ['reachable'],
    registers,
    collect,
  });
  const oldest = new Gauge({
    name: 'svc_workers_oldest_heartbeat_seconds',
    help: 'The time since the last heartbeat of the worker that has been silent for longest.',
    registers,
    collect,
  });
  const archive = new Gauge({
    name: 'svc_database_archive_failing',
    help: 'Whether the database could not archive the last part of its log.',
    registers,
    collect,
  });

  async function read(): Promise<void> {
    try {
      const [byState, byReason, inQuarantine, heartbeats, isFailing] = await Promise.all([
        store.sandboxes.countByState(),
        store.sandboxes.countEnded(ENDED_WITHIN_SECONDS),
        store.quarantine.count(),
        store.workers.heartbeats(WORKER_TIMES.unreachableMs),
        store.archive.isFailing(),
      ]);
      for (const state of ACTIVE_STATES) sandboxes.set({ state }, byState.get(state) ?? 0);
      for (const reason of END_REASONS) ended.set({ reason }, byReason.get(reason) ?? 0);
      quarantined.set(inQuarantine);
      workers.set({ reachable: 'true' }, heartbeats.reachable);
      workers.set({ reachable: 'false' }, heartbeats.unreachable);
      oldest.set(heartbeats.oldest);
      archive.set(isFailing ? 1 : 0);
      up.set(1);
    } catch (error) {
      if (!isServiceError(error, 'database_unavailable')) throw error;
      up.set(0);
    }
  }
}
