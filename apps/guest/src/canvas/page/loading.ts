/** Counts what a page is loading. */
export class Loading {
  readonly #pending = new Set<Promise<unknown>>();

  /** Lets `settled` wait for `work`, however it ends. Answers `work`. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#pending.add(work);
    const done = () => this.#pending.delete(work);
    work.then(done, done);
    return work;
  }

  /** Resolves when nothing is being loaded. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
  }
}
