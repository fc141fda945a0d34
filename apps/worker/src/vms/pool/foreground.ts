/** Counts the work that callers wait for, so that background work can yield to it. */
export class Foreground {
  #running = 0;
  #waiters: (() => void)[] = [];

  /** Runs work that a caller waits for. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#release();
    }
  }

  /** Resolves when no caller waits, or when `signal` aborts. */
  async idle(signal: AbortSignal): Promise<void> {
    while (this.#running > 0 && !signal.aborted) {
      const quiet = Promise.withResolvers<void>();
      this.#waiters.push(quiet.resolve);
      signal.addEventListener('abort', () => quiet.resolve(), { once: true });
      await quiet.promise;
    }
  }

  #release(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }
}
