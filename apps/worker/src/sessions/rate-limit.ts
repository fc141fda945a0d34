export interface Rate {
  readonly perSecond: number;
  /** As much may come at once. */
  readonly burst: number;
}

/** A token bucket. */
export class RateLimit {
  readonly #rate: Rate;
  readonly #now: () => number;
  #tokens: number;
  #at: number;

  /** `now`: monotonic milliseconds. */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#now = now;
    this.#tokens = rate.burst;
    this.#at = now();
  }

  /** Whether `cost` may pass now; it is taken only then. */
  take(cost = 1): boolean {
    this.#refill();
    if (this.#tokens < cost) return false;
    this.#tokens -= cost;
    return true;
  }

  /** Takes `cost` in any case; answers after how many ms the bucket is out of debt. */
  spend(cost: number): number {
    this.#refill();
    this.#tokens -= cost;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#rate.perSecond) * 1000;
  }

  #refill(): void {
    const now = this.#now();
    const gained = ((now - this.#at) / 1000) * this.#rate.perSecond;
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + gained);
    this.#at = now;
  }
}
