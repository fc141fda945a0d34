/** Runs one task in the background. It ends with its owner: disposing aborts it and waits for it. */
export class OneAtATime implements AsyncDisposable {
  readonly #stopped = new AbortController();
  readonly #signal: AbortSignal;
  #running: Promise<void> = Promise.resolve();
  #isIdle = true;

  constructor(signal: AbortSignal) {
    this.#signal = AbortSignal.any([signal, this.#stopped.signal]);
  }

  get isIdle(): boolean {
    return this.#isIdle;
  }

  /** Starts a task when the one before has ended. @throws the failure of the one before */
  async start(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await this.#running;
    this.#isIdle = false;
    this.#running = task(this.#signal).finally(() => {
      this.#isIdle = true;
    });
    // Whoever waits next learns of the failure.
    this.#running.catch(() => undefined);
  }

  /** Waits for the task. @throws its failure */
  finished(): Promise<void> {
    return this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled([this.#running]);
  }
}
