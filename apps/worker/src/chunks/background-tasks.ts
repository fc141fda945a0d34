/** Runs a few tasks in the background. They end with their owner: disposing aborts them and waits for them. */
export class BackgroundTasks implements AsyncDisposable {
  readonly #most: number;
  readonly #stopped = new AbortController();
  readonly #signal: AbortSignal;
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly reason: unknown } | undefined;

  /** @param most tasks that run at once */
  constructor(most: number, signal: AbortSignal) {
    this.#most = most;
    this.#signal = AbortSignal.any([signal, this.#stopped.signal]);
  }

  /** Whether a task could start at once. */
  get hasRoom(): boolean {
    return this.#running.size < this.#most;
  }

  /** Starts a task, when there is room for it. @throws the failure of an earlier one */
  async start(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    while (!this.hasRoom) await Promise.race(this.#running);
    this.#throwFailure();
    const running = task(this.#signal)
      .catch((reason: unknown) => {
        this.#failure ??= { reason };
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Waits for the tasks. @throws the first failure, without waiting for the others */
  async finished(): Promise<void> {
    while (this.#running.size > 0 && this.#failure === undefined) await Promise.race(this.#running);
    this.#throwFailure();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#running);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.reason;
  }
}
