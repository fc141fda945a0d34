import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit/process';

type Environment = Readonly<Record<string, string | undefined>>;

/** The address of a service and the account to use it with. */
export interface Credentials {
  readonly base_url: string;
  readonly api_key: string;
  readonly email: string;
  readonly tenant_id: string;
  /** The account token of the last `svc login`, valid for an hour. */
  readonly account_token?: string;
  /** The CA to trust, if the system does not trust it. */
  readonly ca_file?: string;
}

/** Path of the credentials that `svc login` writes: `svc/credentials.json` in the user's configuration directory. */
export function loginFile(environment: Environment = process.env): string {
  const base = environment.XDG_CONFIG_HOME;
  const directory =
    base !== undefined && isAbsolute(base) ? base : join(environment.HOME ?? homedir(), '.config');
  return join(directory, 'svc/credentials.json');
}

/** Path of the credentials that a service on this machine writes for its local account. */
export function localCredentialsFile(dataDir: string): string {
  return join(dataDir, 'credentials.json');
}

/** Reads credentials; undefined if the file is missing or invalid. */
export async function readCredentials(file: string): Promise<Credentials | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  try {
    const value: unknown = JSON.parse(text);
    return isCredentials(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Writes credentials atomically, readable only by the owner of the file. */
export async function writeCredentials(file: string, credentials: Credentials): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFileAtomic(file, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
}

function isCredentials(value: unknown): value is Credentials {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  const required = ['base_url', 'api_key', 'email', 'tenant_id'];
  return (
    required.every((name) => typeof fields[name] === 'string') &&
    ['string', 'undefined'].includes(typeof fields.ca_file) &&
    ['string', 'undefined'].includes(typeof fields.account_token)
  );
}
