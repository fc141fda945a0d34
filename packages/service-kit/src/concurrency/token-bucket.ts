/** A rate limit. */
export interface Rate {
  /** Tokens added per second. */
  readonly perSecond: number;
  /** The most tokens that can accumulate. */
  readonly burst: number;
}

/** A token bucket, full at first. */
export class TokenBucket {
  readonly #rate: Rate;
  readonly #now: () => number;
  #tokens: number;
  #filledAt: number;

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#now = now;
    this.#tokens = rate.burst;
    this.#filledAt = now();
  }

  /** Takes `cost` tokens if there are as many; tells whether it did. */
  take(cost = 1): boolean {
    this.#refill();
    if (this.#tokens < cost) return false;
    this.#tokens -= cost;
    return true;
  }

  /** Takes `cost` tokens even if there are fewer. Returns the milliseconds until the debt is paid off. */
  spend(cost: number): number {
    this.#refill();
    this.#tokens -= cost;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#rate.perSecond) * 1000;
  }

  /** Whether it has as many tokens as it can: it behaves like a new one. */
  get isFull(): boolean {
    this.#refill();
    return this.#tokens === this.#rate.burst;
  }

  #refill(): void {
    const now = this.#now();
    const gained = ((now - this.#filledAt) / 1000) * this.#rate.perSecond;
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + gained);
    this.#filledAt = now;
  }
}
