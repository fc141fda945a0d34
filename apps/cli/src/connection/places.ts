import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where `svc login` keeps its credentials: `svc/credentials.json` under the user's configuration directory. */
export function loginFile(environment: Environment = process.env): string {
  const base = environment.XDG_CONFIG_HOME;
  const directory =
    base !== undefined && isAbsolute(base) ? base : join(environment.HOME ?? homedir(), '.config');
  return join(directory, 'svc/credentials.json');
}

/** Where a service on this machine keeps the credentials of its local account. */
export function localCredentialsFile(dataDir: string): string {
  return join(dataDir, 'credentials.json');
}
