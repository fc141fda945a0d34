/** Runs tasks one at a time, in the order they came. */
export class Mutex {
  #tail: Promise<unknown> = Promise.resolve();
  #pending = 0;

  /** Runs `task` once every earlier task has settled. */
  run<T>(task: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    const result = this.#tail.then(task).finally(() => {
      this.#pending -= 1;
    });
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Settles when no task runs or waits; never rejects. */
  async idle(): Promise<void> {
    while (this.#pending > 0) await this.#tail;
  }
}
