import { KeyedTokenBuckets } from '@svc/service-kit/concurrency';

/** The bytes of a burst are those of so many seconds. */
const BURST_SECONDS = 4;

/** Bounds the bytes of all live views of each tenant on this worker. `now`: a monotonic clock, in milliseconds. */
export function viewRates(perSecond: number, now?: () => number): KeyedTokenBuckets {
  return new KeyedTokenBuckets({ perSecond, burst: perSecond * BURST_SECONDS }, now);
}
