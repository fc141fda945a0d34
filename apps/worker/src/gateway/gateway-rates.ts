import { ByteRates, type RateTime } from '../rates/byte-rates.ts';

const BURST_SECONDS = 8;

/**
 * The rates at which the gateway moves the requests and answers of tenants, of so many bytes per second for each. All of
 * them pass through the event loop of the worker, which all tenants share.
 */
export function gatewayRates(perSecond: number, time?: RateTime): ByteRates {
  return new ByteRates({ perSecond, burstSeconds: BURST_SECONDS }, time);
}

/** The chunks, each as soon as the rate of its tenant allows. @throws the reason of the signal, even while it waits */
export async function* paced(
  chunks: AsyncIterable<Buffer>,
  rates: Pick<ByteRates, 'ready' | 'spend'>,
  tenantId: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  for await (const chunk of chunks) {
    await rates.ready(tenantId, signal);
    rates.spend(tenantId, chunk.length);
    yield chunk;
  }
}
