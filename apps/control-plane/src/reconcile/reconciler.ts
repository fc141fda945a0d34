import {
  type HeartbeatRequest,
  type HeartbeatResponse,
  type RegisterWorkerRequest,
  type RegisterWorkerResponse,
  ServiceError,
  WORKER_TIMES,
  type WorkerSandbox,
} from '@svc/contract';
import type { Ending, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { compare, type Ended } from './compare.ts';

/** Longer than any creation request or heartbeat takes to arrive. */
const HEARTBEAT_GRACE_MS = 30_000;
/** A starting worker knows all its sandboxes, except those of creation requests that have not arrived yet. */
const REGISTER_GRACE_MS = 2_000;

/** Reconciles the ledger with the reports of workers. */
export class Reconciler {
  readonly #store: Pick<Store, 'sandboxes' | 'workers'>;
  readonly #logger: FastifyBaseLogger;

  constructor(store: Pick<Store, 'sandboxes' | 'workers'>, logger: FastifyBaseLogger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** Registers a worker that has started, with the sandboxes that it found alive. */
  async register(worker: RegisterWorkerRequest): Promise<RegisterWorkerResponse> {
    await this.#store.workers.register(worker);
    this.#logger.info({ workerId: worker.worker_id, url: worker.url }, 'worker registered');
    return {
      heartbeat_interval_ms: WORKER_TIMES.heartbeatIntervalMs,
      ...(await this.#settle(worker.worker_id, worker.sandboxes, REGISTER_GRACE_MS)),
    };
  }

  /** Handles a heartbeat. @throws ServiceError `worker_not_registered` */
  async heartbeat(workerId: string, report: HeartbeatRequest): Promise<HeartbeatResponse> {
    const worker = await this.#store.workers.heartbeat(workerId, report);
    if (worker === undefined) throw new ServiceError('worker_not_registered');
    const orders = await this.#settle(workerId, report.sandboxes, HEARTBEAT_GRACE_MS);
    return worker.drain ? { ...orders, drain: true } : orders;
  }

  /** Applies changes that a worker reports. A worker can end its own sandboxes only. */
  async apply(workerId: string, reports: readonly WorkerSandbox[]): Promise<void> {
    await this.#store.sandboxes.applyReports(workerId, reports);
    for (const report of reports) {
      if (report.state !== 'destroyed') continue;
      await this.#store.sandboxes.end({ ...endingOf(report), workerId });
    }
  }

  async #settle(
    workerId: string,
    reports: readonly WorkerSandbox[],
    graceMs: number,
  ): Promise<HeartbeatResponse> {
    await this.#store.sandboxes.applyReports(workerId, reports);
    const ids = reports.map((report) => report.vm_id);
    const ledger = await this.#store.sandboxes.entriesFor(workerId, ids);
    const { destroy, ended } = compare({
      workerId,
      ledger,
      reports,
      graceMs,
      restartGraceMs: REGISTER_GRACE_MS,
    });
    for (const difference of ended) await this.#end(workerId, difference);
    return { destroy };
  }

  async #end(workerId: string, { entry, reason, report }: Ended): Promise<void> {
    const { vm_id: vmId, generation } = entry;
    if (report === undefined) {
      this.#logger.warn({ workerId, vmId, reason }, 'sandbox is gone from its worker');
    }
    const facts = report === undefined ? {} : endingOf(report);
    await this.#store.sandboxes.end({ ...facts, vmId, generation, reason });
  }
}

function endingOf(report: WorkerSandbox): Ending {
  return {
    vmId: report.vm_id,
    generation: report.generation,
    reason: report.end_reason ?? 'worker_lost',
    ...(report.ended_at === undefined ? {} : { endedAt: report.ended_at }),
    cpuSeconds: report.cpu_seconds,
    agentExitCode: report.agent_exit_code,
  };
}
