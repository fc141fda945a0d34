/** Runs operations one after another, in the order in which they were asked for. */
export class OperationQueue {
  readonly #limit: number;
  readonly #full: () => Error;
  #pending = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** At most `limit` operations run or wait. `full` makes the error for one more. */
  constructor(limit: number, full: () => Error) {
    this.#limit = limit;
    this.#full = full;
  }

  /**
   * Runs an operation after those before it, and returns its result.
   * @throws the error for a full queue; the reason of `signal` when it aborts before; what the operation throws
   */
  async run<T>(signal: AbortSignal, operation: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#pending >= this.#limit) throw this.#full();
    this.#pending += 1;
    const turn = this.#last.then(async () => {
      signal.throwIfAborted();
      return await operation();
    });
    // Whether one fails is no matter of the next.
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#pending -= 1;
    }
  }
}
