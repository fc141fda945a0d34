import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SvcError, type VerifyTenantResponse } from '@svc/sdk';
import {
  type Credentials,
  localCredentialsFile,
  readCredentials,
  writeCredentials,
} from '../../connection/credentials.ts';
import { CliError } from '../../output/errors.ts';
import type { ServicePaths } from '../paths.ts';
import { localClient, type StartedControlPlane } from './control-plane.ts';

/** The email address of the local account. No mail can ever be sent to it, because its domain does not resolve. */
const OPERATOR = 'operator@svc.localhost';

/**
 * Returns the credentials of the local account, which the command line on this machine uses. The first start signs it up
 * through the public API, with the code from the outbox, and stores its key in the data directory. If the stored key is
 * rejected, the account gets a new one.
 * @throws CliError `no_code`
 */
export async function operatorAccount(
  paths: ServicePaths,
  service: StartedControlPlane,
): Promise<Credentials> {
  const file = localCredentialsFile(paths.dataDir);
  const stored = await readCredentials(file);
  const account =
    stored !== undefined && (await isAccepted(stored.api_key, service))
      ? stored
      : await signUp(paths, service);
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

async function signUp(
  paths: ServicePaths,
  service: StartedControlPlane,
): Promise<VerifyTenantResponse> {
  await using client = localClient(service);
  const since = Date.now();
  await client.tenants.requestCode(OPERATOR);
  return client.tenants.verify(OPERATOR, await codeFromOutbox(paths.outbox, since));
}

async function isAccepted(apiKey: string, service: StartedControlPlane): Promise<boolean> {
  await using client = localClient(service, apiKey);
  try {
    await client.tenants.me();
    return true;
  } catch (error) {
    if (error instanceof SvcError && error.status === 401) return false;
    throw error;
  }
}

/** Reads the code from the newest message to the operator, which is written before the request returns. */
async function codeFromOutbox(outbox: string, since: number): Promise<string> {
  const names = (await readdir(outbox)).filter((name) => name.endsWith('.eml')).sort();
  for (const name of names.reverse()) {
    const file = join(outbox, name);
    if ((await stat(file)).mtimeMs < since - 1000) break;
    const text = await readFile(file, 'utf8');
    const code = text.includes(OPERATOR) ? /^Subject: (\d{6}) /m.exec(text)?.[1] : undefined;
    if (code !== undefined) return code;
  }
  throw new CliError('no_code', `no message to ${OPERATOR} found in ${outbox}`, {
    next: 'check the service log, then start again',
  });
}
