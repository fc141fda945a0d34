import autocannon from 'autocannon';
import { inTurns, type TurnSamples } from './in-turns.ts';
import type { RowContext } from './row.ts';

/** Number of persistent connections in a measurement. */
export const CONNECTIONS = 50;
/** Duration of one measurement. */
export const ROUND_SECONDS = 2;
/** In the first rounds neither side's code is optimised yet. */
export const WARM_UP_ROUNDS = 2;

interface Credentials {
  readonly apiKey: string;
  /** Signs the certificate of the server. */
  readonly ca: string;
}

/** Successful requests per second to a URL over {@link CONNECTIONS} persistent HTTPS connections. @throws Error when one fails */
export async function requestsPerSecond(url: string, { apiKey, ca }: Credentials): Promise<number> {
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

/** Measures two URLs alternately, with the service's API key; ours with another one, if it is given. */
export function ratesInTurns(
  { service, runs, progress }: Pick<RowContext, 'service' | 'runs' | 'progress'>,
  urls: { readonly ours: string; readonly comparison: string },
  credentials: Credentials = service,
): Promise<TurnSamples> {
  return inTurns({
    runs,
    warmUps: WARM_UP_ROUNDS,
    ours: () => requestsPerSecond(urls.ours, credentials),
    comparison: () => requestsPerSecond(urls.comparison, service),
    onTurn: (done) => progress(`${done}/${runs}`),
  });
}
