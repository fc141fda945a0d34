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

  /** Ends the watch; the signal can no longer abort. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(this.#reason()), this.#stallMs);
  }
}
