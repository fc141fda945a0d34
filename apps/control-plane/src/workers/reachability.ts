import { WORKER_TIMES } from '@svc/contract';
import type { WorkerRow } from '@svc/store';

/** Whether a worker counts as unreachable: it has been silent for long, or an operator has removed it. */
export function isUnreachable(worker: Pick<WorkerRow, 'silent_ms' | 'removed_at'>): boolean {
  return worker.removed_at !== null || worker.silent_ms > WORKER_TIMES.unreachableMs;
}
