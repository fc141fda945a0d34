import { TokenBucket } from '../concurrency/token-bucket.ts';

const ONE_A_MINUTE = { perSecond: 1 / 60, burst: 1 };

/** Decides which failures are logged of those that a client or a sandbox can cause as often as it likes. */
export class FailureLog {
  readonly #rate: TokenBucket;
  #omitted = 0;

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now?: () => number) {
    this.#rate = new TokenBucket(ONE_A_MINUTE, now);
  }

  /**
   * Calls `log` for the first failure in a minute, with the number of those left out since the last call. Returns whether it
   * did.
   */
  note(log: (omitted: number) => void): boolean {
    if (!this.#rate.take()) {
      this.#omitted += 1;
      return false;
    }
    log(this.#omitted);
    this.#omitted = 0;
    return true;
  }

  /** Whether the next failure is logged. */
  get isReady(): boolean {
    return this.#rate.isFull;
  }
}

/** A {@link FailureLog} for each key, such as an account. One that has logged nothing for a minute is forgotten, with its count. */
export class FailureLogs {
  readonly #now: (() => number) | undefined;
  /** Those that logged longest ago come first. */
  readonly #logs = new Map<string, FailureLog>();

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now?: () => number) {
    this.#now = now;
  }

  /** As {@link FailureLog.note}, for the failures of this key. */
  note(key: string, log: (omitted: number) => void): boolean {
    const found = this.#of(key);
    const logged = found.note(log);
    if (logged) {
      this.#logs.delete(key);
      this.#logs.set(key, found);
    }
    return logged;
  }

  #of(key: string): FailureLog {
    const known = this.#logs.get(key);
    if (known !== undefined) return known;
    for (const [other, { isReady }] of this.#logs) {
      if (!isReady) break;
      this.#logs.delete(other);
    }
    return new FailureLog(this.#now);
  }
}
