import type { DestroyOrder, EndReason, WorkerSandbox } from '@svc/contract';
import type { LedgerEntry } from '@svc/store';

/** The changes that make ledger and worker agree. */
export interface Differences {
  /** Orders for the worker. */
  readonly destroy: DestroyOrder[];
  /** Live sandboxes of which the ledger knows nothing, or less than the worker. */
  readonly unknown: WorkerSandbox[];
  /** Changes of the ledger. */
  readonly ended: Ended[];
}

/** A sandbox that is alive in the ledger only. */
export interface Ended {
  readonly entry: LedgerEntry;
  readonly reason: EndReason;
  /** The final report of its worker, if there is one. */
  readonly report?: WorkerSandbox;
}

/** Input of {@link compare}. */
export interface Comparison {
  readonly workerId: string;
  readonly ledger: readonly LedgerEntry[];
  readonly reports: readonly WorkerSandbox[];
  /**
   * Grace period of a new sandbox, in milliseconds. A report may lack the sandbox because it was made before the
   * creation request reached the worker.
   */
  readonly graceMs: number;
  /** Grace period of a sandbox that was placed before the last registration of its worker; may be shorter. */
  readonly restartGraceMs: number;
}

/**
 * Compares the ledger with the reports of a worker. The worker is authoritative for the sandboxes that are alive,
 * the ledger for those that should be. A pure function.
 */
export function compare(comparison: Comparison): Differences {
  const { workerId, ledger, reports } = comparison;
  const entries = new Map(ledger.map((entry) => [entry.vm_id, entry]));
  const held = new Map(
    reports
      .filter((report) => isFor(report, workerId, entries))
      .map((report) => [report.vm_id, report]),
  );
  const live = reports.filter((report) => report.state !== 'destroyed');
  const isKnown = ({ vm_id, generation }: WorkerSandbox) =>
    covers(entries.get(vm_id), workerId, generation);
  const destroy = live
    .filter(isKnown)
    .flatMap((report) => orderFor(report, workerId, entries.get(report.vm_id)));
  const ended = ledger
    .filter((entry) => entry.worker_id === workerId && entry.state !== 'destroyed')
    .flatMap((entry) => endOf(entry, held.get(entry.vm_id), comparison));
  return { destroy, unknown: live.filter((report) => !isKnown(report)), ended };
}

function endOf(
  entry: LedgerEntry,
  report: WorkerSandbox | undefined,
  { graceMs, restartGraceMs }: Comparison,
): Ended[] {
  if (report?.state === 'destroyed') {
    return [{ entry, reason: report.end_reason ?? reasonOfLoss(entry), report }];
  }
  const grace = entry.placed_before_registration ? restartGraceMs : graceMs;
  const missing = report === undefined && entry.age_ms > grace;
  return missing ? [{ entry, reason: reasonOfLoss(entry) }] : [];
}

function isFor(
  report: WorkerSandbox,
  workerId: string,
  entries: ReadonlyMap<string, LedgerEntry>,
): boolean {
  const entry = entries.get(report.vm_id);
  return entry?.worker_id === workerId && entry.generation === report.generation;
}

/** Whether this entry was made for this generation on this worker, or for a later one. */
function covers(entry: LedgerEntry | undefined, workerId: string, generation: number): boolean {
  if (entry === undefined || entry.generation < generation) return false;
  return entry.generation > generation || entry.worker_id === workerId;
}

/** The order to destroy a sandbox that is ended, placed elsewhere or to be deleted. */
function orderFor(
  report: WorkerSandbox,
  workerId: string,
  entry: LedgerEntry | undefined,
): DestroyOrder[] {
  const wanted =
    entry !== undefined &&
    entry.state !== 'destroyed' &&
    entry.worker_id === workerId &&
    entry.generation === report.generation &&
    entry.delete_requested_at === null;
  if (wanted) return [];
  return [{ vm_id: report.vm_id, generation: report.generation, reason: 'deleted' }];
}

/** A sandbox with a pending deletion ends as deleted, regardless of the cause. */
function reasonOfLoss(entry: LedgerEntry): EndReason {
  if (entry.delete_requested_at !== null) return 'deleted';
  const starting = ['creating', 'configuring', 'booting'].includes(entry.state);
  return starting ? 'boot_failed' : 'worker_lost';
}
