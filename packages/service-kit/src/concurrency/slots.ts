/** Runs at most a fixed number of tasks at once, in the order of the calls. A queued task can be cancelled. */
export class Slots {
  #free: number;
  readonly #queue = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs `task` when a slot is free. Rejects with the signal's reason if the signal aborts while `task` is queued. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      return await task();
    } finally {
      this.#give();
    }
  }

  async #take(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const turn = Promise.withResolvers<void>();
    const onTurn = () => turn.resolve();
    const onAbort = () => {
      // Leave the queue first, so that a cancelled task never gets a slot.
      if (this.#queue.delete(onTurn)) turn.reject(signal?.reason);
    };
    this.#queue.add(onTurn);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await turn.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #give(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    // The slot passes directly to the next task and never counts as free.
    this.#queue.delete(next);
    next();
  }
}
