/** At most a fixed number of tasks at once; who waits for a turn can give up. */
export class Slots {
  #free: number;
  readonly #queue = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs `task` when it is its turn; rejects with the signal's reason if that aborts while waiting. */
  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      return await task();
    } finally {
      this.#give();
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const turn = Promise.withResolvers<void>();
    const onTurn = () => turn.resolve();
    const onAbort = () => {
      // Off the queue first, so that no turn is given to somebody who has left.
      if (this.#queue.delete(onTurn)) turn.reject(signal.reason);
    };
    this.#queue.add(onTurn);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #give(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    // The turn passes on without becoming free in between.
    this.#queue.delete(next);
    next();
  }
}
