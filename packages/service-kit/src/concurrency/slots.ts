interface Waiting {
  readonly key: string;
  readonly onTurn: () => void;
}

/**
 * Runs at most a fixed number of tasks at once, in the order of the calls. If the calls have keys, the keys take turns: the
 * next task is the oldest of the key with the fewest running ones. A queued task can be cancelled.
 */
export class Slots {
  #free: number;
  readonly #queue = new Set<Waiting>();
  readonly #running = new Map<string, number>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs `task` when a slot is free. Rejects with the signal's reason if the signal aborts while `task` is queued. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal, key = ''): Promise<T> {
    await this.#take(key, signal);
    try {
      return await task();
    } finally {
      this.#give(key);
    }
  }

  async #take(key: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      this.#count(key, 1);
      return;
    }
    const turn = Promise.withResolvers<void>();
    const waiting = { key, onTurn: turn.resolve };
    const onAbort = () => {
      // Leave the queue first, so that a cancelled task never gets a slot.
      if (this.#queue.delete(waiting)) turn.reject(signal?.reason);
    };
    this.#queue.add(waiting);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await turn.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #give(key: string): void {
    this.#count(key, -1);
    const next = this.#next();
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    // The slot passes directly to the next task and never counts as free.
    this.#queue.delete(next);
    this.#count(next.key, 1);
    next.onTurn();
  }

  #next(): Waiting | undefined {
    let best: Waiting | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const waiting of this.#queue) {
      const running = this.#running.get(waiting.key) ?? 0;
      if (running >= fewest) continue;
      best = waiting;
      fewest = running;
      if (running === 0) break;
    }
    return best;
  }

  #count(key: string, change: number): void {
    const running = (this.#running.get(key) ?? 0) + change;
    if (running === 0) this.#running.delete(key);
    else this.#running.set(key, running);
  }
}
