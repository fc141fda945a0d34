import type { DestroyOrder, EndReason, WorkerSandbox } from '@svc/contract';
import type { LedgerEntry } from '@svc/store';

/** The changes that make ledger and worker agree. */
export interface Differences {
  /** Orders for the worker. */
  readonly destroy: DestroyOrder[];
  /** Changes of the ledger. */
  readonly ended: Ended[];
}

/** A sandbox that is alive in the ledger only. */
export interface Ended {
  readonly entry: LedgerEntry;
  readonly reason: EndReason;
  /** What its worker says of its end, if it knows. */
  readonly report?: WorkerSandbox;
}

/** What is being compared. */
export interface Comparison {
  readonly workerId: string;
  readonly ledger: readonly LedgerEntry[];
  readonly reports: readonly WorkerSandbox[];
  /**
   * A sandbox placed more recently than this, in milliseconds, may be missing from a report that
   * was made before its creation reached the worker.
   */
  readonly graceMs: number;
  /** The same for one placed before the worker registered last; it may be shorter. */
  readonly restartGraceMs: number;
}

/**
 * Compares what should be with what is. The worker is the truth about what lives; the ledger about
 * what should. Pure: the same input gives the same answer, however often it is asked.
 */
export function compare(comparison: Comparison): Differences {
  const { workerId, ledger, reports } = comparison;
  const entries = new Map(ledger.map((entry) => [entry.vm_id, entry]));
  const held = new Map(
    reports
      .filter((report) => isFor(report, workerId, entries))
      .map((report) => [report.vm_id, report]),
  );
  const destroy = reports
    .filter((report) => report.state !== 'destroyed')
    .flatMap((report) => orderFor(report, workerId, entries.get(report.vm_id)));
  const ended = ledger
    .filter((entry) => entry.worker_id === workerId && entry.state !== 'destroyed')
    .flatMap((entry) => endOf(entry, held.get(entry.vm_id), comparison));
  return { destroy, ended };
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

/** The order to destroy a sandbox that is unknown, ended, placed elsewhere or to be deleted. */
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

/** The end of a sandbox that was to be deleted is its deletion, whatever the cause. */
function reasonOfLoss(entry: LedgerEntry): EndReason {
  if (entry.delete_requested_at !== null) return 'deleted';
  const starting = ['creating', 'configuring', 'booting'].includes(entry.state);
  return starting ? 'boot_failed' : 'worker_lost';
}
