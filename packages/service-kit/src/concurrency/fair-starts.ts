import { performance } from 'node:perf_hooks';
import { KeyedTokenBuckets } from './keyed-token-buckets.ts';

/** What a key may begin whatever else goes on. */
const FREE = { perSecond: 20, burst: 8 };
/** Keys that have begun nothing for this long do not count as present. */
const PRESENT_MS = 2_000;
/** The share of the time that the event loop may be busy while those wait who have begun much. */
const BUSY_SHARE = 0.6;
const TICK_MS = 10;

export interface FairStartsOptions {
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
  /** The share of the time since the last call in which the event loop was busy. */
  readonly busyShare?: () => number;
}

interface Waiting {
  readonly begin: () => void;
}

/**
 * Decides when tasks of many keys begin, so that a key that begins very many leaves time of the event loop to the others:
 * while there are others, it begins a few each second, and more only as long as the event loop is not busy. Keys that begin
 * little never wait, nor does one that is alone.
 */
export class FairStarts {
  readonly #now: () => number;
  readonly #busyShare: () => number;
  readonly #free: KeyedTokenBuckets;
  /** When each key last came, in that order. */
  readonly #cameAt = new Map<string, number>();
  /** Those that wait, by key, in the order of their turns. */
  readonly #queues = new Map<string, Set<Waiting>>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ now = () => performance.now(), busyShare = loopShare() }: FairStartsOptions = {}) {
    this.#now = now;
    this.#busyShare = busyShare;
    this.#free = new KeyedTokenBuckets(FREE, now);
  }

  /** Settles when a task of the key may begin. @throws the reason of the signal, if that aborts first */
  async begin(key: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#note(key);
    if (!this.#queues.has(key) && this.#mayBegin(key)) return;
    await this.#wait(key, signal);
  }

  /** Counts a task that has begun as so many more, since it took much longer than most. */
  spend(key: string, tasks: number): void {
    this.#free.spend(key, tasks);
  }

  #note(key: string): void {
    this.#cameAt.delete(key);
    this.#cameAt.set(key, this.#now());
  }

  #mayBegin(key: string): boolean {
    return this.#free.take(key) || this.#isAlone(key);
  }

  #isAlone(key: string): boolean {
    for (const [other, at] of this.#cameAt) {
      if (this.#now() - at < PRESENT_MS) break;
      // A key that waits is there, however long ago it came.
      if (!this.#queues.has(other)) this.#cameAt.delete(other);
    }
    return this.#cameAt.size === 1 && this.#cameAt.has(key);
  }

  async #wait(key: string, signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const waiting: Waiting = { begin: turn.resolve };
    const onAbort = () => {
      this.#leave(key, waiting);
      turn.reject(signal.reason);
    };
    const queue = this.#queues.get(key) ?? new Set();
    this.#queues.set(key, queue.add(waiting));
    signal.addEventListener('abort', onAbort, { once: true });
    this.#startTicking();
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #startTicking(): void {
    if (this.#timer !== undefined) return;
    this.#busyShare();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    if (this.#busyShare() < BUSY_SHARE) {
      const [next] = this.#queues.keys();
      if (next !== undefined) this.#beginOne(next);
    }
    for (const key of [...this.#queues.keys()]) {
      while (this.#queues.has(key) && this.#mayBegin(key)) this.#beginOne(key);
    }
    if (this.#queues.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #beginOne(key: string): void {
    const queue = this.#queues.get(key);
    const [waiting] = queue ?? [];
    if (queue === undefined || waiting === undefined) return;
    this.#leave(key, waiting);
    if (queue.size > 0) {
      // Its next turn comes after that of every other key.
      this.#queues.delete(key);
      this.#queues.set(key, queue);
    }
    waiting.begin();
  }

  #leave(key: string, waiting: Waiting): void {
    const queue = this.#queues.get(key);
    queue?.delete(waiting);
    if (queue?.size === 0) this.#queues.delete(key);
  }
}

/** A function that tells the share of the time since its last call in which the event loop was busy. */
function loopShare(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
