import { KeyedTokenBuckets, sleep } from '@svc/service-kit/concurrency';

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

/**
 * Bounds the bytes that each tenant saves on this worker, over time: whoever has saved a burst more than the rate allows
 * waits before the next save. It is a rate for all sandboxes of a tenant, because each new sandbox would have a burst of
 * its own. A save that has begun is never held up, since it holds memory that all tenants share.
 */
export class SaveRates {
  readonly #time: RateTime;
  readonly #tenants: KeyedTokenBuckets;

  /** @param perSecond bytes, for each tenant */
  constructor(perSecond: number, time: RateTime = SYSTEM_TIME) {
    this.#time = time;
    this.#tenants = new KeyedTokenBuckets(
      { perSecond, burst: perSecond * BURST_SECONDS },
      time.now,
    );
  }

  /** Settles when the tenant may save. @throws the reason of the signal */
  async ready(tenantId: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (;;) {
      const debtMs = this.#tenants.debtMs(tenantId);
      if (debtMs === 0) return;
      await this.#time.sleep(debtMs, signal);
      signal.throwIfAborted();
    }
  }

  /** Counts bytes that the tenant saves. */
  spend(tenantId: string, bytes: number): void {
    this.#tenants.spend(tenantId, bytes);
  }
}
