/** Callers that come while the work is under way share its result; the next caller starts it anew. */
export class SingleFlight<T> {
  #flight: Promise<T> | undefined;

  /** Joins the flight under way, or starts one. */
  run(work: () => Promise<T>): Promise<T> {
    this.#flight ??= work().finally(() => {
      this.#flight = undefined;
    });
    return this.#flight;
  }

  get active(): boolean {
    return this.#flight !== undefined;
  }
}
