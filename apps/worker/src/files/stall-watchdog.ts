/** Aborts a stalled transfer: `tick` must be called at least every `stallMs` milliseconds. */
export class StallWatchdog {
  readonly #controller = new AbortController();
  readonly #stallMs: number;
  readonly #reason: () => Error;
  #timer: NodeJS.Timeout;

  /** `reason` creates the error with which the signal aborts. */
  constructor(stallMs: number, reason: () => Error) {
    this.#stallMs = stallMs;
    this.#reason = reason;
    this.#timer = this.#arm();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Reports progress. */
  tick(): void {
    this.#timer.refresh();
  }

  /** Suspends the watch, while something else holds the transfer up. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Continues after a pause, with the full time. */
  resume(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#arm();
  }

  /** Ends the watch; the signal can no longer abort. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(this.#reason()), this.#stallMs);
  }
}
