import { SANDBOX_STATES } from '@svc/contract';
import { Gauge, type Registry } from '@svc/service-kit';
import type { Store } from '@svc/store';

/** Counts sandboxes and workers at each scrape. While the database is down, the last values stay. */
export function registerLedgerMetrics(store: Store, registry: Registry, reachableMs: number): void {
  const sandboxes = new Gauge({
    name: 'svc_sandboxes',
    help: 'Sandboxes in the ledger that are not destroyed, by state.',
    labelNames: ['state'],
    registers: [registry],
    collect: async () => {
      const counts = await store.sandboxes.countByState().catch(() => undefined);
      if (counts === undefined) return;
      for (const state of SANDBOX_STATES) {
        if (state !== 'destroyed') sandboxes.set({ state }, counts.get(state) ?? 0);
      }
    },
  });
  const workers = new Gauge({
    name: 'svc_workers',
    help: 'Workers in the ledger, by whether they have sent a recent heartbeat.',
    labelNames: ['reachable'],
    registers: [registry],
    collect: async () => {
      const all = await store.workers.list().catch(() => undefined);
      if (all === undefined) return;
      const since = Date.now() - reachableMs;
      const reachable = all.filter((worker) => worker.heartbeat_at.getTime() > since).length;
      workers.set({ reachable: 'true' }, reachable);
      workers.set({ reachable: 'false' }, all.length - reachable);
    },
  });
}
