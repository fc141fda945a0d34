import type { WorkerSandbox } from '@svc/contract';

const MAX_QUEUED = 10_000;
const MAX_BATCH = 500;

/**
 * Changes not yet sent to the control plane: the latest record of each changed sandbox, oldest change first. Bounded;
 * dropped records reach the control plane with the next heartbeat.
 */
export class EventQueue {
  readonly #records = new Map<string, WorkerSandbox>();

  get size(): number {
    return this.#records.size;
  }

  push(record: WorkerSandbox): void {
    this.#records.delete(record.vm_id);
    this.#records.set(record.vm_id, record);
    if (this.#records.size <= MAX_QUEUED) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }

  /** The next events to send; they stay queued until {@link sent}. */
  batch(): WorkerSandbox[] {
    return [...this.#records.values()].slice(0, MAX_BATCH);
  }

  /** Removes sent events, except those replaced by a newer record since. */
  sent(batch: readonly WorkerSandbox[]): void {
    for (const record of batch) {
      if (this.#records.get(record.vm_id) === record) this.#records.delete(record.vm_id);
    }
  }
}
