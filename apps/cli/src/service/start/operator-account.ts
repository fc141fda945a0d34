import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SvcError, type VerifyTenantResponse } from '@svc/sdk';
import {
  type Credentials,
  readCredentials,
  writeCredentials,
} from '../../connection/credentials-file.ts';
import { localCredentialsFile } from '../../connection/places.ts';
import { CliError } from '../../output/cli-error.ts';
import type { ServicePlaces } from '../places.ts';
import { localClient } from './local-client.ts';
import type { StartedService } from './start-service.ts';

/** The local account's address. Nothing is ever mailed to it: the name cannot be resolved. */
const OPERATOR = 'operator@svc.localhost';

type Service = Pick<StartedService, 'localUrl' | 'baseUrl' | 'tls'>;

/**
 * The account that this machine's command line uses: signed up over the public API with the code
 * from the outbox at the first start, kept in the data directory, made anew when its key is refused.
 */
export async function operatorAccount(
  places: ServicePlaces,
  service: Service,
): Promise<Credentials> {
  const file = localCredentialsFile(places.dataDir);
  const kept = await readCredentials(file);
  const account =
    kept !== undefined && (await isAccepted(kept.api_key, service))
      ? kept
      : await signUp(places, service);
  const { caFile } = service.tls;
  const credentials = {
    base_url: service.baseUrl,
    api_key: account.api_key,
    email: OPERATOR,
    tenant_id: account.tenant_id,
    ...(caFile === undefined ? {} : { ca_file: caFile }),
  };
  await writeCredentials(file, credentials);
  return credentials;
}

async function signUp(places: ServicePlaces, service: Service): Promise<VerifyTenantResponse> {
  await using client = localClient(service);
  const since = Date.now();
  await client.tenants.requestCode(OPERATOR);
  return client.tenants.verify(OPERATOR, await codeFromOutbox(places.outbox, since));
}

async function isAccepted(apiKey: string, service: Service): Promise<boolean> {
  await using client = localClient(service, apiKey);
  try {
    await client.tenants.me();
    return true;
  } catch (error) {
    if (error instanceof SvcError && error.status === 401) return false;
    throw error;
  }
}

/** The code of the newest message to the operator. It is written before the request is answered. */
async function codeFromOutbox(outbox: string, since: number): Promise<string> {
  const names = (await readdir(outbox)).filter((name) => name.endsWith('.eml')).sort();
  for (const name of names.reverse()) {
    const file = join(outbox, name);
    if ((await stat(file)).mtimeMs < since - 1000) break;
    const text = await readFile(file, 'utf8');
    const code = text.includes(OPERATOR) ? /^Subject: (\d{6}) /m.exec(text)?.[1] : undefined;
    if (code !== undefined) return code;
  }
  throw new CliError('no_code', `no message to ${OPERATOR} in ${outbox}`, {
    next: 'look at the service log, then start again',
  });
}
