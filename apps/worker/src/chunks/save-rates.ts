import { ByteRates, type RateTime } from '../rates/byte-rates.ts';

const BURST_SECONDS = 64;

/**
 * The rates at which tenants save, of so many bytes per second for each. A save waits before it begins; one that has begun
 * is never held up, since it holds memory that all tenants share.
 */
export function saveRates(perSecond: number, time?: RateTime): ByteRates {
  return new ByteRates({ perSecond, burstSeconds: BURST_SECONDS }, time);
}
