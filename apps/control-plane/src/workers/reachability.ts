import { WORKER_TIMES } from '@svc/contract';
import type { WorkerRow } from '@svc/store';

/** Whether a worker has been silent for so long that it counts as unreachable. */
export function isUnreachable(worker: Pick<WorkerRow, 'silent_ms'>): boolean {
  return worker.silent_ms > WORKER_TIMES.unreachableMs;
}
