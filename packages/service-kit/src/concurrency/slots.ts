interface Waiting {
  readonly onTurn: () => void;
}

/**
 * Runs at most a fixed number of tasks at once, in the order of the calls. If the calls have keys, the keys take turns: the
 * next task is the oldest of the key with the fewest running ones, and among those of the key that waits longest for its
 * turn. A queued task can be cancelled.
 */
export class Slots {
  readonly #mostPerKey: number;
  #free: number;
  /** By key, in the order of their turns. */
  readonly #queues = new Map<string, Set<Waiting>>();
  readonly #running = new Map<string, number>();

  /** @param mostPerKey tasks of one key that run at once; default: as many as there are slots */
  constructor(count: number, mostPerKey = count) {
    this.#free = count;
    this.#mostPerKey = mostPerKey;
  }

  /** Slots of which no key has all, so that a task of another one begins at once, however long the others take. */
  static shared(count: number): Slots {
    return new Slots(count, Math.max(1, count - 1));
  }

  /** Runs `task` when a slot is free. Rejects with the signal's reason if the signal aborts while `task` is queued. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal, key = ''): Promise<T> {
    const release = await this.take(signal, key);
    try {
      return await task();
    } finally {
      release();
    }
  }

  /**
   * Takes a slot when one is free, and returns the function that gives it back, which may be called again. Rejects with the
   * signal's reason if the signal aborts first.
   */
  async take(signal?: AbortSignal, key = ''): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#free > 0 && this.#runningOf(key) < this.#mostPerKey) {
      this.#free -= 1;
      this.#count(key, 1);
    } else {
      await this.#wait(key, signal);
    }
    let isHeld = true;
    return () => {
      if (isHeld) this.#give(key);
      isHeld = false;
    };
  }

  async #wait(key: string, signal: AbortSignal | undefined): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const waiting = { onTurn: turn.resolve };
    const onAbort = () => {
      // Leave the queue first, so that a cancelled task never gets a slot.
      if (this.#leave(key, waiting)) turn.reject(signal?.reason);
    };
    const queue = this.#queues.get(key) ?? new Set();
    this.#queues.set(key, queue.add(waiting));
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await turn.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #leave(key: string, waiting: Waiting): boolean {
    const queue = this.#queues.get(key);
    const wasQueued = queue?.delete(waiting) ?? false;
    if (queue?.size === 0) this.#queues.delete(key);
    return wasQueued;
  }

  #give(key: string): void {
    this.#count(key, -1);
    const next = this.#nextKey();
    const [waiting] = (next === undefined ? undefined : this.#queues.get(next)) ?? [];
    if (next === undefined || waiting === undefined) {
      this.#free += 1;
      return;
    }
    // The slot passes directly to the next task and never counts as free.
    this.#count(next, 1);
    this.#leave(next, waiting);
    const rest = this.#queues.get(next);
    if (rest !== undefined) {
      // Its next turn comes after that of every other key.
      this.#queues.delete(next);
      this.#queues.set(next, rest);
    }
    waiting.onTurn();
  }

  #nextKey(): string | undefined {
    let best: string | undefined;
    let fewest = this.#mostPerKey;
    for (const key of this.#queues.keys()) {
      const running = this.#runningOf(key);
      if (running >= fewest) continue;
      best = key;
      fewest = running;
      if (running === 0) break;
    }
    return best;
  }

  #runningOf(key: string): number {
    return this.#running.get(key) ?? 0;
  }

  #count(key: string, change: number): void {
    const running = this.#runningOf(key) + change;
    if (running === 0) this.#running.delete(key);
    else this.#running.set(key, running);
  }
}
