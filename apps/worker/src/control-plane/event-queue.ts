import type { WorkerSandbox } from '@svc/contract';
import type { Clock } from '../clock.ts';
import type { Report } from './worker-report.ts';

const MAX_QUEUED = 10_000;
const MAX_BATCH = 500;

interface QueuedRecord {
  readonly record: WorkerSandbox;
  /** Monotonic milliseconds at which it was made. */
  readonly madeAt: number;
}

/**
 * Changes not yet sent to the control plane: the latest record of each changed sandbox, oldest change first. Bounded;
 * dropped records reach the control plane with the next heartbeat.
 */
export class EventQueue {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #queued = new Map<string, QueuedRecord>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#queued.size;
  }

  /** Queues a record that has just been made. */
  push(record: WorkerSandbox): void {
    this.#queued.delete(record.vm_id);
    this.#queued.set(record.vm_id, { record, madeAt: this.#clock.monotonic() });
    if (this.#queued.size <= MAX_QUEUED) return;
    const [oldest] = this.#queued.keys();
    if (oldest !== undefined) this.#queued.delete(oldest);
  }

  /** The next events to send. They stay queued until acknowledged; those replaced by a newer record since stay for longer. */
  batch(): Report<WorkerSandbox[]> {
    const batch = [...this.#queued.values()].slice(0, MAX_BATCH);
    const now = this.#clock.monotonic();
    return {
      body: batch.map(({ record, madeAt }) => aged(record, now - madeAt)),
      acknowledge: () => {
        for (const queued of batch) {
          const { vm_id: vmId } = queued.record;
          if (this.#queued.get(vmId) === queued) this.#queued.delete(vmId);
        }
      },
    };
  }
}

/** A record that is sent `ms` after it was made. */
function aged(record: WorkerSandbox, ms: number): WorkerSandbox {
  if (record.end_age_ms === undefined) return record;
  return { ...record, end_age_ms: Math.round(record.end_age_ms + ms) };
}
