import { type Config, loadConfig } from '@svc/config';
import { SvcClient } from '@svc/sdk';
import { CliError } from '../output/cli-error.ts';
import { readCa } from './ca-file.ts';
import { type Credentials, readCredentials } from './credentials-file.ts';
import { localCredentialsFile, loginFile } from './places.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What a client command needs: where the service is, what to trust, as whom to call. */
export interface Connection {
  readonly baseUrl: string;
  readonly caFile: string | undefined;
  readonly apiKey: string | undefined;
}

/**
 * Where client commands connect to. The environment decides (`SVC_BASE_URL`, `SVC_API_KEY`, `SVC_CA_FILE`);
 * what it leaves open comes from the data directory it names, else from `svc login`, else from the
 * service of the default data directory.
 */
export async function resolveConnection(
  environment: Environment = process.env,
): Promise<Connection> {
  const config = loadConfig(environment);
  const kept = await keptCredentials(config, environment);
  const baseUrl = config.baseUrl ?? kept?.base_url;
  if (baseUrl === undefined) {
    throw new CliError('no_service_known', 'no service is known to this command line', {
      next: 'start one here with `svc up`, or sign in to one: SVC_BASE_URL=https://… svc login you@example.com',
    });
  }
  const fits = kept?.base_url === baseUrl ? kept : undefined;
  return {
    baseUrl,
    caFile: config.caFile ?? fits?.ca_file,
    apiKey: environment.SVC_API_KEY || fits?.api_key,
  };
}

/** A client for {@link resolveConnection}, with a credential. */
export async function connect(environment: Environment = process.env): Promise<SvcClient> {
  const connection = await resolveConnection(environment);
  if (connection.apiKey === undefined) {
    throw new CliError('not_signed_in', `no API key for ${connection.baseUrl}`, {
      next: 'sign in with `svc login you@example.com`, or set SVC_API_KEY',
    });
  }
  return clientOf(connection);
}

/** A client for a connection. */
export async function clientOf({ baseUrl, caFile, apiKey }: Connection): Promise<SvcClient> {
  const ca = caFile === undefined ? undefined : await readCa(caFile);
  return new SvcClient({ baseUrl, apiKey, ca });
}

async function keptCredentials(
  config: Config,
  environment: Environment,
): Promise<Credentials | undefined> {
  const local = localCredentialsFile(config.dataDir);
  const login = loginFile(environment);
  const order = environment.SVC_DATA_DIR ? [local, login] : [login, local];
  for (const file of order) {
    const credentials = await readCredentials(file);
    if (credentials !== undefined && fitsBaseUrl(credentials, config.baseUrl)) return credentials;
  }
  return undefined;
}

function fitsBaseUrl(credentials: Credentials, baseUrl: string | undefined): boolean {
  return baseUrl === undefined || credentials.base_url === baseUrl;
}
