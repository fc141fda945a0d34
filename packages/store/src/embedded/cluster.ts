import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { PostgresBinaries } from './binaries.ts';
import type { Account } from './system-user.ts';

const run = promisify(execFile);
const INITDB_TIMEOUT_MS = 120_000;

/** Superuser of every embedded cluster. */
export const CLUSTER_USER = 'svc';

/**
 * The server's name for its own directory. The directory is entered before privileges are dropped, so it may be below
 * directories that the server's account cannot search, such as a /root with mode 0700.
 */
export const ENTERED_DIRECTORY = '/proc/self/cwd';

/**
 * Creates the database cluster unless it exists. Creates it under a temporary name and renames it when complete, so
 * that an interrupted first start leaves no incomplete cluster.
 */
export async function ensureCluster(
  directory: string,
  binaries: PostgresBinaries,
  account: Account,
): Promise<void> {
  if (await isCluster(directory)) return;
  await removeUnfinished(directory);
  const temporary = `${directory}.new-${process.pid}`;
  await makeOwned(temporary, account);
  await run(
    join(binaries.directory, 'initdb'),
    [
      ...['-D', ENTERED_DIRECTORY, `--username=${CLUSTER_USER}`, '--no-instructions'],
      ...['--auth-local=trust', '--auth-host=reject', '--encoding=UTF8', '--locale=C'],
    ],
    { cwd: temporary, ...account, env: serverEnvironment(), timeout: INITDB_TIMEOUT_MS },
  );
  await rename(temporary, directory);
}

/** Creates a directory that only the server's account (and root) can enter. */
export async function makeOwned(directory: string, account: Account): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o700);
  await chown(directory, account.uid, account.gid);
}

/** The server does not inherit the service's environment, which contains secrets. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}

async function isCluster(directory: string): Promise<boolean> {
  return stat(join(directory, 'PG_VERSION')).then(
    () => true,
    () => false,
  );
}

async function removeUnfinished(directory: string): Promise<void> {
  const parent = dirname(directory);
  await mkdir(parent, { recursive: true });
  for (const name of await readdir(parent)) {
    if (!name.startsWith(`${basename(directory)}.new-`)) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
}
