import type { WorkerRow } from '@svc/store';

/** What is needed to reach a worker and to know that it is the one. */
export type WorkerAddress = Pick<WorkerRow, 'worker_id' | 'url' | 'certificate'>;
