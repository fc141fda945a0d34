import {
  type HeartbeatRequest,
  type HeartbeatResponse,
  knownSandbox,
  type RegisterWorkerRequest,
  type RegisterWorkerResponse,
  type RenewLeaseRequest,
  type RenewLeaseResponse,
  type ReportedSandbox,
  ServiceError,
  WORKER_TIMES,
  type WorkerSandbox,
} from '@svc/contract';
import type { Ending, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { type Comparison, compare, type Differences, type Ended } from './compare.ts';

/** Longer than any creation request or heartbeat takes to arrive. */
const HEARTBEAT_GRACE_MS = 30_000;
/** A starting worker knows all its sandboxes, except those of creation requests that have not arrived yet. */
const REGISTER_GRACE_MS = 2_000;

type GracePeriods = Pick<Comparison, 'graceMs' | 'restartGraceMs'>;
/** Nothing is missing that a short report leaves out. */
const ENDLESS: GracePeriods = { graceMs: Infinity, restartGraceMs: Infinity };

const QUARANTINED =
  'the ledger does not know sandboxes of this worker, so it was restored; they are in quarantine: see `svc worker quarantine ls`';

type LedgerParts = Pick<Store, 'sandboxes' | 'workers' | 'quarantine'>;

/** Reconciles the ledger with the reports of workers. */
export class Reconciler {
  readonly #store: LedgerParts;
  readonly #logger: FastifyBaseLogger;

  constructor(store: LedgerParts, logger: FastifyBaseLogger) {
    this.#store = store;
    this.#logger = logger;
  }

  /**
   * Registers a worker that has started, with the sandboxes that it found alive.
   * @throws ServiceError `worker_id_in_use`
   */
  async register(worker: RegisterWorkerRequest): Promise<RegisterWorkerResponse> {
    if (!(await this.#store.workers.register(worker))) {
      const { worker_id: workerId, url } = worker;
      this.#logger.error({ workerId, url }, 'another machine asks for the id of a worker');
      throw new ServiceError('worker_id_in_use');
    }
    this.#logger.info({ workerId: worker.worker_id, url: worker.url }, 'worker registered');
    return {
      heartbeat_interval_ms: WORKER_TIMES.heartbeatIntervalMs,
      ...(await this.#settle(worker.worker_id, worker.sandboxes, {
        graceMs: REGISTER_GRACE_MS,
        quarantines: true,
      })),
    };
  }

  /** Handles a heartbeat. @throws ServiceError `worker_not_registered` */
  async heartbeat(workerId: string, report: HeartbeatRequest): Promise<HeartbeatResponse> {
    const worker = await this.#store.workers.heartbeat(workerId, report);
    if (worker === undefined) throw new ServiceError('worker_not_registered');
    const orders = await this.#settle(workerId, report.sandboxes, {
      graceMs: HEARTBEAT_GRACE_MS,
      quarantines: worker.quarantines,
    });
    return worker.drain ? { ...orders, drain: true } : orders;
  }

  /**
   * Handles a short report. What it does not name is as it was, so nothing is missed or unknown because of it.
   * @throws ServiceError `worker_not_registered`
   */
  async renewLease(workerId: string, report: RenewLeaseRequest): Promise<RenewLeaseResponse> {
    const worker = await this.#store.workers.renewLease(workerId, report);
    if (worker === undefined) throw new ServiceError('worker_not_registered');
    const { destroy, unknown } = await this.#reconcile(workerId, report.sandboxes);
    return {
      destroy,
      ...(worker.has_orders || unknown.length > 0 ? { report_all: true } : {}),
      ...(worker.drain ? { drain: true } : {}),
    };
  }

  /** Applies changes that a worker reports. A worker can end its own sandboxes only. */
  async apply(workerId: string, reported: readonly ReportedSandbox[]): Promise<void> {
    const reports = reported.map(knownSandbox);
    await this.#store.sandboxes.applyReports(workerId, reports);
    const ended = reports.filter(({ state }) => state === 'destroyed');
    await this.#store.sandboxes.endAll(ended.map((one) => ({ ...endingOf(one), workerId })));
  }

  async #settle(
    workerId: string,
    reported: readonly ReportedSandbox[],
    { graceMs, quarantines }: { readonly graceMs: number; readonly quarantines: boolean },
  ): Promise<Pick<HeartbeatResponse, 'destroy' | 'quarantine'>> {
    const graces = { graceMs, restartGraceMs: REGISTER_GRACE_MS };
    const { destroy, unknown } = await this.#reconcile(workerId, reported, graces);
    if (unknown.length === 0 && !quarantines) return { destroy };
    const judged = await this.#judge(workerId, unknown);
    return { destroy: [...destroy, ...judged.destroy], quarantine: judged.quarantine };
  }

  /**
   * Makes the ledger agree with a complete report, whose sandboxes that it lacks have these grace periods; without them, with
   * what a short report names. Returns the orders for the worker, and its live sandboxes of which the ledger knows nothing.
   */
  async #reconcile(
    workerId: string,
    reported: readonly ReportedSandbox[],
    graces?: GracePeriods,
  ): Promise<Pick<Differences, 'destroy' | 'unknown'>> {
    const isComplete = graces !== undefined;
    if (reported.length === 0 && !isComplete) return { destroy: [], unknown: [] };
    const reports = reported.map(knownSandbox);
    const ledger = await this.#store.sandboxes.compareReports(workerId, reports, isComplete);
    const differences = compare({ workerId, ledger, reports, ...(graces ?? ENDLESS) });
    const endings = differences.ended.map((one) => this.#endingFor(workerId, one));
    await this.#store.sandboxes.endAll(endings);
    return differences;
  }

  /** A VM that the ledger has lost may be all that is left of its sandbox, so an operator decides about it. */
  async #judge(
    workerId: string,
    unknown: readonly WorkerSandbox[],
  ): Promise<Required<Pick<HeartbeatResponse, 'destroy' | 'quarantine'>>> {
    const judged = await this.#store.quarantine.judge(workerId, unknown);
    const vmIds = judged.filter(({ is_new }) => is_new).map(({ vm_id }) => vm_id);
    if (vmIds.length > 0) this.#logger.error({ workerId, vmIds }, QUARANTINED);
    return {
      destroy: judged
        .filter(({ verdict }) => verdict !== 'held')
        .map(({ vm_id, generation }) => ({ vm_id, generation, reason: 'deleted' })),
      quarantine: judged
        .filter(({ verdict }) => verdict === 'held')
        .map(({ vm_id, generation }) => ({ vm_id, generation })),
    };
  }

  #endingFor(workerId: string, { entry, reason, report }: Ended): Ending {
    const { vm_id: vmId, generation } = entry;
    if (report === undefined) {
      this.#logger.warn({ workerId, vmId, reason }, 'sandbox is gone from its worker');
    }
    return { ...(report === undefined ? {} : endingOf(report)), vmId, generation, reason };
  }
}

function endingOf(report: WorkerSandbox): Ending {
  return {
    vmId: report.vm_id,
    generation: report.generation,
    reason: report.end_reason ?? 'worker_lost',
    ...(report.end_age_ms === undefined ? {} : { endAgeMs: report.end_age_ms }),
    // All that a worker of an earlier version says.
    ...(report.ended_at === undefined ? {} : { endedAt: report.ended_at }),
    cpuSeconds: report.cpu_seconds,
    agentExitCode: report.agent_exit_code,
  };
}
