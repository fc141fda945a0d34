/** Aborts a transfer that stands still: `tick` has to be called at least every `stallMs` milliseconds. */
export class ProgressWatch {
  readonly #controller = new AbortController();
  readonly #stallMs: number;
  readonly #reason: () => Error;
  #timer: NodeJS.Timeout;

  /** `reason` makes the error that the signal aborts with. */
  constructor(stallMs: number, reason: () => Error) {
    this.#stallMs = stallMs;
    this.#reason = reason;
    this.#timer = this.#arm();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Notes that something moved. */
  tick(): void {
    this.#timer.refresh();
  }

  /** Ends the watch; the signal no longer aborts. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(this.#reason()), this.#stallMs);
  }
}
