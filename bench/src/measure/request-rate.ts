import autocannon from 'autocannon';
import { inTurns, type TurnSamples } from './in-turns.ts';
import type { RowContext } from './row.ts';

/** Kept connections that a measurement of requests uses. */
export const CONNECTIONS = 50;
/** Length of one measurement. */
export const ROUND_SECONDS = 2;
/** The first rounds run code that is not optimised yet, on both sides. */
export const WARM_UP_ROUNDS = 2;

/** How many requests a second a URL answers with success, over {@link CONNECTIONS} kept HTTPS connections. */
export async function requestsPerSecond(
  url: string,
  { apiKey, ca }: { readonly apiKey: string; readonly ca: string },
): Promise<number> {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: ROUND_SECONDS,
    headers: { authorization: `Bearer ${apiKey}` },
    tlsOptions: { ca },
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${result.non2xx} failures and ${result.errors} errors from ${url}`);
  }
  return result['2xx'] / result.duration;
}

/** Measures two URLs in turns, with the key of the service. */
export function ratesInTurns(
  { service, runs, progress }: Pick<RowContext, 'service' | 'runs' | 'progress'>,
  urls: { readonly ours: string; readonly comparison: string },
): Promise<TurnSamples> {
  return inTurns({
    runs,
    warmUps: WARM_UP_ROUNDS,
    ours: () => requestsPerSecond(urls.ours, service),
    comparison: () => requestsPerSecond(urls.comparison, service),
    onTurn: (done) => progress(`${done}/${runs}`),
  });
}
