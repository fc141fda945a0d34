import { WORKER_TIMES } from '@svc/contract';
import type { WorkerRow } from '@svc/store';

/** Whether a worker has been silent for so long that it counts as unreachable. */
export function isUnreachable(worker: Pick<WorkerRow, 'heartbeat_at'>): boolean {
  return Date.now() - worker.heartbeat_at.getTime() > WORKER_TIMES.unreachableMs;
}
