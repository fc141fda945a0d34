import { SvcError } from '../errors.ts';

/** Combines the caller's signal with a deadline, and records which of them fired. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #timeoutMs: number;
  readonly #timeout: AbortSignal;

  constructor(timeoutMs: number, signal?: AbortSignal | undefined) {
    this.#timeoutMs = timeoutMs;
    this.#timeout = AbortSignal.timeout(timeoutMs);
    this.signal = signal === undefined ? this.#timeout : AbortSignal.any([signal, this.#timeout]);
  }

  /** The error to throw after the signal has fired: the caller's own reason, or a `timeout`. */
  failure(): unknown {
    if (this.signal.reason !== this.#timeout.reason) return this.signal.reason;
    return new SvcError({
      code: 'timeout',
      detail: `No answer within ${this.#timeoutMs / 1000} s; give the call a longer timeoutMs, or check the service.`,
      cause: this.#timeout.reason,
    });
  }
}
