import { SANDBOX_STATES } from '@svc/contract';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ExecSlots } from './exec/exec-slots.ts';
import type { SandboxRegistry } from './sandbox/registry.ts';
import type { Pool } from './vms/pool/pool.ts';

export interface ExecMetrics {
  readonly started: Counter;
}

export interface WorkerMetrics {
  readonly exec: ExecMetrics;
  /** Records the duration of a create, in seconds. */
  onCreated(seconds: number, outcome: 'created' | 'failed'): void;
  /** Counts a transfer to or from the object store that failed. */
  onTransferFailed(operation: 'get' | 'put'): void;
}

const CREATE_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 120];

/** The metrics of a worker: sandboxes, pool, creates and commands. */
export function createWorkerMetrics(
  metrics: Registry,
  sources: { registry: SandboxRegistry; pool: Pool; execSlots: ExecSlots },
): WorkerMetrics {
  const registers = [metrics];
  new Gauge({
    name: 'svc_worker_sandboxes',
    help: 'Sandboxes by state. Destroyed ones are counted while their record is kept.',
    labelNames: ['state'],
    registers,
    collect() {
      const counts = sources.registry.countByState();
      for (const state of SANDBOX_STATES) this.set({ state }, counts[state]);
    },
  });
  new Gauge({
    name: 'svc_worker_pool_idle',
    help: 'Idle VMs ready for use, by template that the pool keeps.',
    labelNames: ['template'],
    registers,
    collect() {
      for (const template of sources.pool.templates) {
        if (sources.pool.keeps(template)) this.set({ template }, sources.pool.size(template));
      }
    },
  });
  new Gauge({
    name: 'svc_worker_execs_running',
    help: 'Commands in progress.',
    registers,
    collect() {
      this.set(sources.execSlots.running);
    },
  });
  const creates = new Histogram({
    name: 'svc_worker_create_duration_seconds',
    help: 'Time to start a sandbox, or until the start failed.',
    labelNames: ['outcome'],
    buckets: CREATE_BUCKETS,
    registers,
  });
  const started = new Counter({
    name: 'svc_worker_execs_total',
    help: 'Commands started.',
    registers,
  });
  const failedTransfers = new Counter({
    name: 'svc_worker_object_transfer_failures_total',
    help: 'Transfers of objects that failed, each attempt.',
    labelNames: ['operation'],
    registers,
  });
  for (const operation of ['get', 'put']) failedTransfers.inc({ operation }, 0);
  return {
    exec: { started },
    onCreated: (seconds, outcome) => creates.observe({ outcome }, seconds),
    onTransferFailed: (operation) => failedTransfers.inc({ operation }),
  };
}
