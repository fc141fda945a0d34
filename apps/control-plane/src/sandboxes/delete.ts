import { type DeleteSandboxResponse, isServiceError, WORKER_TIMES } from '@svc/contract';
import type { SandboxRow, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import type { Fleet } from '../workers/fleet.ts';
import { isUnreachable } from '../workers/reachability.ts';
import type { WorkerApi } from '../workers/worker-api.ts';
import { unreachableError } from '../workers/worker-errors.ts';
import { findSandbox } from './find.ts';

/** Longer than a worker needs for a sandbox with a workspace, which it tries to save for five minutes at the end. */
const SAVE_MS = 7 * 60_000;
/** Between looks at whether the worker of a teardown is still heard. */
const LOOK_MS = 5_000;
/**
 * Looks in a row that find it unreachable, before the wait for it ends. After an outage of the database every worker counts as
 * unreachable until its next report, which one that is alive has made 15 s later: a report has 10 s, the next one comes after 5.
 */
const SILENT_LOOKS = 6;

/** Destroys sandboxes in any state. */
export class SandboxDeleter {
  readonly #store: Pick<Store, 'sandboxes' | 'workers'>;
  readonly #fleet: Fleet;
  /** In progress, by sandbox. However often a sandbox is deleted, its worker is called once. */
  readonly #teardowns = new Map<string, Promise<void>>();

  constructor(store: Pick<Store, 'sandboxes' | 'workers'>, fleet: Fleet) {
    this.#store = store;
    this.#fleet = fleet;
  }

  /**
   * Returns when the teardown is complete, for which a workspace may have to be saved. If the worker does not answer, the
   * deletion stays on record and happens at the worker's next heartbeat. If the worker counts as unreachable, the sandbox
   * counts as destroyed immediately.
   * @throws ServiceError `sandbox_not_found`, `worker_unreachable`, `worker_bad_response`
   */
  async delete(caller: Caller, vmId: string): Promise<DeleteSandboxResponse> {
    const row = await findSandbox(this.#store, caller, vmId);
    await this.stop(row);
    return { vm_id: vmId, state: 'destroyed' };
  }

  /** As {@link delete}, for a row of the ledger. @throws ServiceError `worker_unreachable`, `worker_bad_response` */
  async stop(row: SandboxRow): Promise<void> {
    if (row.state === 'destroyed') return;
    const { vm_id: vmId } = row;
    await this.#store.sandboxes.requestDelete(vmId);
    await this.#tearDownOnce(row);
    await this.#store.sandboxes.end({ vmId, reason: 'deleted' });
  }

  #tearDownOnce(row: SandboxRow): Promise<void> {
    const { vm_id: vmId } = row;
    const teardown =
      this.#teardowns.get(vmId) ?? this.#tearDown(row).finally(() => this.#teardowns.delete(vmId));
    this.#teardowns.set(vmId, teardown);
    return teardown;
  }

  async #tearDown(row: SandboxRow): Promise<void> {
    const silent = new AbortController();
    const look = setInterval(this.#looker(row.worker_id, silent), LOOK_MS);
    try {
      const { signal } = silent;
      const wait = row.placement?.workspace === undefined ? {} : { waitMs: SAVE_MS };
      const destroy = (worker: WorkerApi) =>
        worker.destroy(row.vm_id, 'deleted', { ...wait, signal });
      await this.#fleet.call(row.worker_id, destroy, {
        maxSilenceMs: WORKER_TIMES.unreachableMs,
      });
    } catch (error) {
      // The worker never had it, or lost it.
      if (isServiceError(error, 'sandbox_not_found')) return;
      const worker = await this.#store.workers.find(row.worker_id);
      if (worker !== undefined && !isUnreachable(worker)) throw error;
    } finally {
      clearInterval(look);
    }
  }

  /** A look at a worker, the last of several that aborts the wait for it. */
  #looker(workerId: string, silent: AbortController): () => Promise<void> {
    let looks = 0;
    let isLooking = false;
    return async () => {
      // All that wait for the database see the same moment.
      if (isLooking) return;
      isLooking = true;
      const worker = await this.#store.workers.find(workerId).catch(() => undefined);
      isLooking = false;
      looks = worker !== undefined && isUnreachable(worker) ? looks + 1 : 0;
      if (looks < SILENT_LOOKS) return;
      silent.abort(unreachableError(workerId, new Error('It has not been heard.')));
    };
  }
}
