/** Runs tasks one at a time, in the order of the calls. */
export class Mutex {
  #tail: Promise<unknown> = Promise.resolve();
  #pending = 0;

  /** Runs `task` after every earlier task has settled; settles like `task`. */
  run<T>(task: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    const result = this.#tail.then(task).finally(() => {
      this.#pending -= 1;
    });
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Resolves when no task is running or queued. Never rejects. */
  async idle(): Promise<void> {
    while (this.#pending > 0) await this.#tail;
  }
}
