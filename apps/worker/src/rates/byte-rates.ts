import { KeyedTokenBuckets, sleep } from '@svc/service-kit/concurrency';

/** The time by which rates are kept. Injected so that tests control it. */
export interface RateTime {
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
  /** Waits; returns early when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** What each tenant may do on this worker. */
export interface ByteRate {
  /** Bytes per second. */
  readonly perSecond: number;
  /** The bytes of a burst are those of so many seconds. */
  readonly burstSeconds: number;
}

const SYSTEM_TIME: RateTime = { now: () => performance.now(), sleep };

/**
 * Bounds the bytes that each tenant moves on this worker, over time: whoever has moved a burst more than the rate allows
 * waits. It is a rate for all sandboxes of a tenant, because each new sandbox would have a burst of its own.
 */
export class ByteRates {
  readonly #time: RateTime;
  readonly #tenants: KeyedTokenBuckets;

  constructor({ perSecond, burstSeconds }: ByteRate, time: RateTime = SYSTEM_TIME) {
    this.#time = time;
    this.#tenants = new KeyedTokenBuckets({ perSecond, burst: perSecond * burstSeconds }, time.now);
  }

  /** Settles when the tenant may move more. @throws the reason of the signal */
  async ready(tenantId: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (;;) {
      const debtMs = this.#tenants.debtMs(tenantId);
      if (debtMs === 0) return;
      await this.#time.sleep(debtMs, signal);
      signal.throwIfAborted();
    }
  }

  /** Counts bytes that the tenant moves. */
  spend(tenantId: string, bytes: number): void {
    this.#tenants.spend(tenantId, bytes);
  }
}
