/** A rate limit: `rate` tokens come back per second, at most `burst` are saved up. */
export class TokenBucket {
  readonly #rate: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt: number;

  constructor(rate: number, burst: number, now = performance.now()) {
    this.#rate = rate;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = now;
  }

  /** Takes a token if there is one. `now` is in milliseconds of a clock that never goes back. */
  take(now = performance.now()): boolean {
    const earned = ((now - this.#filledAt) / 1000) * this.#rate;
    this.#tokens = Math.min(this.#burst, this.#tokens + earned);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
