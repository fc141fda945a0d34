import { sleep, TokenBucket } from '@svc/service-kit/concurrency';

/** The bytes of a burst are those of so many seconds. */
const BURST_SECONDS = 64;

/** The time by which rates are kept. Injected so that tests control it. */
export interface RateTime {
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
  /** Waits; returns early when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

const SYSTEM_TIME: RateTime = { now: () => performance.now(), sleep };

interface Entry {
  readonly bucket: TokenBucket;
  usedAt: number;
}

/**
 * Bounds the bytes that each tenant saves on this worker, over time: whoever has saved a burst more than the rate allows
 * waits before the next save. It is a rate for all sandboxes of a tenant, because each new sandbox would have a burst of
 * its own. A save that has begun is never held up, since it holds memory that all tenants share.
 */
export class SaveRates {
  readonly #perSecond: number;
  readonly #time: RateTime;
  readonly #tenants = new Map<string, Entry>();

  /** @param perSecond bytes, for each tenant */
  constructor(perSecond: number, time: RateTime = SYSTEM_TIME) {
    this.#perSecond = perSecond;
    this.#time = time;
  }

  /** Settles when the tenant may save. @throws the reason of the signal */
  async ready(tenantId: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (;;) {
      const debtMs = this.#tenants.get(tenantId)?.bucket.spend(0) ?? 0;
      if (debtMs === 0) return;
      await this.#time.sleep(debtMs, signal);
      signal.throwIfAborted();
    }
  }

  /** Counts bytes that the tenant saves. */
  spend(tenantId: string, bytes: number): void {
    const entry = this.#tenants.get(tenantId) ?? this.#open();
    this.#tenants.set(tenantId, entry);
    entry.usedAt = this.#time.now();
    entry.bucket.spend(bytes);
  }

  #open(): Entry {
    const now = this.#time.now();
    this.#forget(now);
    const rate = { perSecond: this.#perSecond, burst: this.#perSecond * BURST_SECONDS };
    return { bucket: new TokenBucket(rate, this.#time.now), usedAt: now };
  }

  /** Forgets the tenants whose buckets are full again. */
  #forget(now: number): void {
    for (const [tenantId, { bucket, usedAt }] of this.#tenants) {
      const isPaid = bucket.spend(0) === 0;
      if (isPaid && now - usedAt >= BURST_SECONDS * 1000) this.#tenants.delete(tenantId);
    }
  }
}
