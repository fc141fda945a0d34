import { SvcClient } from '@svc/sdk';
import type { StartedService } from './start-service.ts';

/** A client of the service that this process runs, without the way around through its public address. */
export function localClient(
  { localUrl, tls }: Pick<StartedService, 'localUrl' | 'tls'>,
  apiKey?: string,
): SvcClient {
  return new SvcClient({ baseUrl: localUrl, apiKey, ca: tls.ca });
}
