import { backoffMs, openDeadline, sleep } from '@svc/service-kit/concurrency';
import type { WorkerRow } from '@svc/store';
import type { WorkerAddress } from './worker-address.ts';
import { WorkerApi } from './worker-api.ts';
import type { WorkerClient } from './worker-client.ts';
import { unreachableError, WorkerNotReached } from './worker-errors.ts';

/**
 * Longer than a worker with the usual settings needs to end its work in progress and to start again, even on a busy machine.
 * Its VMs run for longer than that without it (`WORKER_TIMES.sandboxLeaseMs`).
 */
const RESTART_MS = 120_000;
const PAUSES = { baseMs: 100, maxMs: 1_000 };

/** How a call treats a worker that restarts. */
export interface CallOptions {
  /** Ends the wait. */
  readonly signal?: AbortSignal;
  /** Whether the worker refuses this call as soon as it is about to end. Default false. */
  readonly isWork?: boolean;
  /** Whether the call can be made again when the worker has not begun it. Default true. */
  readonly isRepeatable?: boolean;
  /** For how long the worker may have been silent to be waited for, in ms. Default: two minutes. */
  readonly maxSilenceMs?: number;
  /** Called before each further attempt: throws when the call cannot succeed any more, however long it waits. */
  readonly check?: () => Promise<unknown>;
}

/** Looks workers up and hands out their APIs. */
export class Fleet {
  readonly #find: (workerId: string) => Promise<WorkerRow | undefined>;
  readonly #client: WorkerClient;

  constructor(find: (workerId: string) => Promise<WorkerRow | undefined>, client: WorkerClient) {
    this.#find = find;
    this.#client = client;
  }

  /** The API of a worker, at the address that it registered last. */
  async worker(workerId: string): Promise<WorkerApi> {
    return this.at(await this.#row(workerId));
  }

  at(worker: WorkerAddress): WorkerApi {
    return new WorkerApi(this.#client, worker);
  }

  /**
   * Makes a call to a worker. If the worker has said that it is about to end, waits for its next process instead of failing,
   * for at most two minutes, only while the worker has not been silent for longer than `maxSilenceMs`, and until `check` throws.
   */
  async call<T>(
    workerId: string,
    call: (worker: WorkerApi) => Promise<T>,
    { signal, isWork = false, isRepeatable = true, maxSilenceMs = RESTART_MS, check }: CallOptions,
  ): Promise<T> {
    using deadline = openDeadline(signal, RESTART_MS);
    // It has said that it is about to end, so recently that its next process may be starting.
    const mayReturn = (worker: WorkerRow) => worker.draining && worker.silent_ms <= maxSilenceMs;
    for (let attempt = 1; ; attempt += 1) {
      const row = await this.#row(workerId);
      if (!isWork || !mayReturn(row) || deadline.signal.aborted) {
        try {
          return await call(this.at(row));
        } catch (error) {
          const mayRepeat = isRepeatable && error instanceof WorkerNotReached;
          if (!mayRepeat || deadline.signal.aborted) throw error;
          // Its next process may have registered since `row` was read.
          if (!mayReturn(row) && !mayReturn(await this.#row(workerId))) throw error;
        }
      }
      await sleep(backoffMs(attempt, PAUSES), deadline.signal);
      await check?.();
    }
  }

  async #row(workerId: string): Promise<WorkerRow> {
    const worker = await this.#find(workerId);
    // A foreign key of the ledger keeps the worker of each sandbox.
    if (worker === undefined) throw new Error(`No worker ${workerId} in the ledger.`);
    if (worker.removed_at !== null) {
      throw unreachableError(workerId, new Error('An operator has removed it.'));
    }
    return worker;
  }
}
