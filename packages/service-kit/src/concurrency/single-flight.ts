/** Lets concurrent callers share one call. A caller that arrives after the call has settled starts a new one. */
export class SingleFlight<T> {
  #flight: Promise<T> | undefined;

  /** Joins the call in progress, or starts one with `call`. */
  run(call: () => Promise<T>): Promise<T> {
    this.#flight ??= call().finally(() => {
      this.#flight = undefined;
    });
    return this.#flight;
  }

  /** Whether a call is in progress. */
  get active(): boolean {
    return this.#flight !== undefined;
  }
}
