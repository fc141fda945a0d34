import type { RateTime } from '../src/rates/byte-rates.ts';

/** A time that passes only while somebody waits. Milliseconds. */
export class RateClock implements RateTime {
  /** All waits so far. */
  waited = 0;
  readonly now = () => this.waited;
  readonly sleep = async (ms: number, signal: AbortSignal) => {
    if (!signal.aborted) this.waited += ms;
  };

  /** The bytes of a burst and of the time until now. */
  allowed(perSecond: number, burstSeconds = 64): number {
    return perSecond * (burstSeconds + this.waited / 1000);
  }
}
