import { type Config, loadConfig } from '@svc/config';
import { SvcClient, SvcError } from '@svc/sdk';
import { CliError } from '../output/errors.ts';
import { withInterrupt } from '../process-lifetime.ts';
import { readCa } from './ca-file.ts';
import {
  type Credentials,
  localCredentialsFile,
  loginFile,
  readCredentials,
} from './credentials.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The address of a service, the CA to trust, and the key to authenticate with. */
export interface Connection {
  readonly baseUrl: string;
  readonly caFile: string | undefined;
  readonly apiKey: string | undefined;
  /** For the calls of an account, such as those of billing. */
  readonly accountToken?: string | undefined;
}

/**
 * Determines which service the client commands use. `SVC_BASE_URL`, `SVC_API_KEY` and `SVC_CA_FILE` take precedence.
 * Missing values come from the data directory that `SVC_DATA_DIR` names, then from the last `svc login`, then from
 * the default data directory.
 * @throws CliError `no_service_known`
 */
export async function resolveConnection(
  environment: Environment = process.env,
): Promise<Connection> {
  const config = loadConfig(environment);
  const stored = await storedCredentials(config, environment);
  const baseUrl = config.baseUrl ?? stored?.base_url;
  if (baseUrl === undefined) {
    throw new CliError('no_service_known', 'no service is configured for this command', {
      next: 'start a service here with `svc up`, or sign in to one: SVC_BASE_URL=https://… svc login you@example.com',
    });
  }
  const matching = stored?.base_url === baseUrl ? stored : undefined;
  return {
    baseUrl,
    caFile: config.caFile ?? matching?.ca_file,
    apiKey: environment.SVC_API_KEY || matching?.api_key,
    accountToken: environment.SVC_ACCOUNT_TOKEN || matching?.account_token,
  };
}

/**
 * Creates a client for the service of {@link resolveConnection}. The caller closes it.
 * @throws CliError `not_signed_in` without an API key
 */
export async function connect(environment: Environment = process.env): Promise<SvcClient> {
  const connection = await resolveConnection(environment);
  if (connection.apiKey === undefined) {
    throw new CliError('not_signed_in', `no API key for ${connection.baseUrl}`, {
      next: 'sign in with `svc login you@example.com`, or set SVC_API_KEY',
    });
  }
  return clientOf(connection);
}

/**
 * Runs a client command: creates a client and a signal that aborts on Ctrl-C or SIGTERM, and closes the client
 * afterwards.
 */
export function withClient(
  work: (client: SvcClient, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  return withInterrupt(async (signal) => {
    await using client = await connect();
    await work(client, signal);
  });
}

/**
 * Runs a client command as {@link withClient} does, with the account token of the last `svc login` or of
 * `SVC_ACCOUNT_TOKEN`.
 * @throws CliError `not_signed_in` without a token that is still valid
 */
export function withAccount(
  work: (client: SvcClient, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  return withInterrupt(async (signal) => {
    const connection = await resolveConnection();
    const { accountToken } = connection;
    if (accountToken === undefined) throw noAccountToken(connection.baseUrl);
    await using client = await clientOf({ ...connection, apiKey: accountToken });
    try {
      await work(client, signal);
    } catch (error) {
      const isExpired = error instanceof SvcError && error.code === 'unauthorized';
      throw isExpired ? noAccountToken(connection.baseUrl, error) : error;
    }
  });
}

function noAccountToken(baseUrl: string, cause?: unknown): CliError {
  return new CliError('not_signed_in', `no valid account token for ${baseUrl}`, {
    next: 'sign in with `svc login you@example.com`, which is valid for an hour, or set SVC_ACCOUNT_TOKEN',
    cause,
  });
}

/** Creates a client for a connection. The caller closes it. */
export async function clientOf({ baseUrl, caFile, apiKey }: Connection): Promise<SvcClient> {
  const ca = caFile === undefined ? undefined : await readCa(caFile);
  return new SvcClient({ baseUrl, apiKey, ca });
}

async function storedCredentials(
  config: Config,
  environment: Environment,
): Promise<Credentials | undefined> {
  const local = localCredentialsFile(config.dataDir);
  const login = loginFile(environment);
  const order = environment.SVC_DATA_DIR ? [local, login] : [login, local];
  for (const file of order) {
    const credentials = await readCredentials(file);
    if (credentials !== undefined && isFor(config.baseUrl, credentials)) return credentials;
  }
  return undefined;
}

function isFor(baseUrl: string | undefined, credentials: Credentials): boolean {
  return baseUrl === undefined || credentials.base_url === baseUrl;
}
