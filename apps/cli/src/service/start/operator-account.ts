import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SvcClient, SvcError } from '@svc/sdk';
import {
  type Credentials,
  readCredentials,
  writeCredentials,
} from '../../connection/credentials-file.ts';
import { localCredentialsFile } from '../../connection/places.ts';
import { CliError } from '../../output/cli-error.ts';
import type { ServicePlaces } from '../places.ts';

/** The local account's address. Nothing is ever mailed to it: the name cannot be resolved. */
const OPERATOR = 'operator@svc.localhost';

interface Address {
  readonly baseUrl: string;
  readonly caFile: string | undefined;
  readonly ca: string | undefined;
}

/**
 * The account that this machine's command line uses: signed up over the public API with the code
 * from the outbox at the first start, kept in the data directory, made anew when its key is refused.
 */
export async function operatorAccount(
  places: ServicePlaces,
  { baseUrl, caFile, ca }: Address,
): Promise<Credentials> {
  const file = localCredentialsFile(places.dataDir);
  const kept = await readCredentials(file);
  const trust = ca === undefined ? {} : { ca };
  if (kept !== undefined && (await isAccepted(kept.api_key, baseUrl, trust))) {
    if (kept.base_url === baseUrl && kept.ca_file === caFile) return kept;
    return keep(file, { ...kept, base_url: baseUrl }, caFile);
  }
  await using client = new SvcClient({ baseUrl, ...trust });
  const since = Date.now();
  await client.tenants.requestCode(OPERATOR);
  const code = await codeFromOutbox(places.outbox, since);
  const account = await client.tenants.verify(OPERATOR, code);
  const credentials = {
    base_url: baseUrl,
    api_key: account.api_key,
    email: OPERATOR,
    tenant_id: account.tenant_id,
  };
  return keep(file, credentials, caFile);
}

async function keep(
  file: string,
  { ca_file: _, ...credentials }: Credentials,
  caFile: string | undefined,
): Promise<Credentials> {
  const kept = caFile === undefined ? credentials : { ...credentials, ca_file: caFile };
  await writeCredentials(file, kept);
  return kept;
}

async function isAccepted(
  apiKey: string,
  baseUrl: string,
  trust: { ca?: string },
): Promise<boolean> {
  await using client = new SvcClient({ baseUrl, apiKey, ...trust });
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
