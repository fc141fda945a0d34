import { type Rate, TokenBucket } from './token-bucket.ts';

/** A token bucket for each key, all of the same rate. A bucket that is full again is forgotten. */
export class KeyedTokenBuckets {
  readonly #rate: Rate;
  readonly #now: () => number;
  readonly #buckets = new Map<string, TokenBucket>();

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#now = now;
  }

  /** Takes `cost` tokens of the key if there are as many; tells whether it did. */
  take(key: string, cost = 1): boolean {
    return this.#bucket(key).take(cost);
  }

  /** Takes `cost` tokens of the key even if there are fewer. */
  spend(key: string, cost: number): void {
    this.#bucket(key).spend(cost);
  }

  /** The milliseconds until the debt of the key is paid off. */
  debtMs(key: string): number {
    return this.#buckets.get(key)?.spend(0) ?? 0;
  }

  #bucket(key: string): TokenBucket {
    const known = this.#buckets.get(key);
    if (known !== undefined) return known;
    for (const [other, bucket] of this.#buckets) {
      if (bucket.isFull) this.#buckets.delete(other);
    }
    const bucket = new TokenBucket(this.#rate, this.#now);
    this.#buckets.set(key, bucket);
    return bucket;
  }
}
