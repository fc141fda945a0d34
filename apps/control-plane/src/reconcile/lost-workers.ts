import { WORKER_TIMES } from '@svc/contract';
import type { Store } from '@svc/store';

/**
 * Tells which workers are lost. A worker counts as lost only if its heartbeats could have been received all the time:
 * after a start of this control plane, or an outage of the database, the full time begins again for every worker, since
 * its VMs may have survived. While most workers are silent at once, none is lost. One that an operator has removed is lost
 * at once.
 */
export class LostWorkers {
  readonly #workers: Pick<Store['workers'], 'find' | 'findLost'>;
  readonly #now: () => number;
  #listeningSince: number;

  /** @param now monotonic time in ms */
  constructor(
    workers: Pick<Store['workers'], 'find' | 'findLost'>,
    now: () => number = () => performance.now(),
  ) {
    this.#workers = workers;
    this.#now = now;
    this.#listeningSince = now();
  }

  /** Notes that no heartbeat could be received until now. */
  noteOutage(): void {
    this.#listeningSince = this.#now();
  }

  /** The workers whose sandboxes are to be given up, and those that are `held`: silent for as long while most are. */
  async givenUp(): Promise<{ readonly lost: readonly string[]; readonly held: readonly string[] }> {
    const { removed, lost, held } = await this.#workers.findLost(WORKER_TIMES);
    if (!this.#hasListenedFor(WORKER_TIMES.lostMs)) return { lost: removed, held: [] };
    return { lost: [...removed, ...lost], held };
  }

  /**
   * Whether the sessions of a worker may go on elsewhere: it has been silent for so long that it holds their VMs, if it
   * still runs. The store gives one that restarts in place longer, whether or not this control plane could hear it.
   */
  async isSilent(workerId: string): Promise<boolean> {
    const { unreachableMs } = WORKER_TIMES;
    const worker = await this.#workers.find(workerId);
    if (worker === undefined || worker.silent_ms < unreachableMs) return false;
    if (!this.#hasListenedFor(unreachableMs)) return false;
    const times = { unreachableMs, lostMs: unreachableMs };
    const { removed, lost } = await this.#workers.findLost(times);
    return removed.includes(workerId) || lost.includes(workerId);
  }

  #hasListenedFor(ms: number): boolean {
    return this.#now() - this.#listeningSince >= ms;
  }
}
