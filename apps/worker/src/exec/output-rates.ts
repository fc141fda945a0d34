import { ByteRates, type RateTime } from '../rates/byte-rates.ts';

const BURST_SECONDS = 2;

/**
 * The rates at which the commands of tenants send output, of so many bytes of events per second for each. All output
 * passes through the event loops of the worker and of the control plane, which all tenants share.
 */
export function outputRates(perSecond: number, time?: RateTime): ByteRates {
  return new ByteRates({ perSecond, burstSeconds: BURST_SECONDS }, time);
}
