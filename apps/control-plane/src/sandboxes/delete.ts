import { type DeleteSandboxResponse, isServiceError } from '@svc/contract';
import type { SandboxRow, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import type { Fleet } from '../workers/fleet.ts';
import { isSilent } from '../workers/silence.ts';
import { findSandbox } from './find.ts';

/** Destroys sandboxes, from whatever state. */
export class SandboxDeleter {
  readonly #store: Pick<Store, 'sandboxes' | 'workers'>;
  readonly #fleet: Fleet;

  constructor(store: Pick<Store, 'sandboxes' | 'workers'>, fleet: Fleet) {
    this.#store = store;
    this.#fleet = fleet;
  }

  /**
   * Answers when the teardown is complete. When the worker does not answer, the wish is kept and
   * carried out as soon as the worker is heard of again; if it has been silent for long, the
   * sandbox counts as gone at once.
   * @throws ServiceError `sandbox_not_found`, `worker_unreachable`
   */
  async delete(caller: Caller, vmId: string): Promise<DeleteSandboxResponse> {
    const row = await findSandbox(this.#store, caller, vmId);
    await this.stop(row);
    return { vm_id: vmId, state: 'destroyed' };
  }

  /** The same for a sandbox that was found before. @throws ServiceError `worker_unreachable` */
  async stop(row: SandboxRow): Promise<void> {
    if (row.state === 'destroyed') return;
    const { vm_id: vmId } = row;
    await this.#store.sandboxes.requestDelete(vmId);
    await this.#tearDown(row);
    await this.#store.sandboxes.end({ vmId, reason: 'deleted' });
  }

  async #tearDown(row: SandboxRow): Promise<void> {
    try {
      const worker = await this.#fleet.worker(row.worker_id);
      await worker.destroy(row.vm_id, 'deleted');
    } catch (error) {
      // The worker never got it, or lost it: there is nothing to tear down.
      if (isServiceError(error, 'sandbox_not_found')) return;
      const worker = await this.#store.workers.find(row.worker_id);
      if (worker !== undefined && !isSilent(worker)) throw error;
    }
  }
}
