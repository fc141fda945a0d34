import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 20_000;

/** The unprivileged account that owns the embedded database when the service runs as root. */
export const POSTGRES_USER = 'svc-postgres';

/** A numeric user and group. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The account that runs the server. It is the account of this process, or for root the system user `svc-postgres`,
 * because PostgreSQL refuses to run as root. Creates the user unless it exists.
 */
export async function serverAccount(): Promise<Account> {
  const uid = process.getuid?.() ?? 0;
  if (uid !== 0) return { uid, gid: process.getgid?.() ?? uid };
  return (await lookUp()) ?? (await create());
}

async function create(): Promise<Account> {
  const options = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
  const failure = await run(
    'useradd',
    [...options, '--shell', '/usr/sbin/nologin', POSTGRES_USER],
    { timeout: COMMAND_TIMEOUT_MS },
  ).then(
    () => undefined,
    (error: unknown) => error,
  );
  // Another instance may have created the user at the same time.
  const account = await lookUp();
  if (account !== undefined) return account;
  throw new Error(
    `Could not create the system user ${POSTGRES_USER} for the embedded PostgreSQL. Create it, or set SVC_DATABASE_URL.`,
    { cause: failure },
  );
}

async function lookUp(): Promise<Account | undefined> {
  const entry = await run('getent', ['passwd', POSTGRES_USER], {
    timeout: COMMAND_TIMEOUT_MS,
  }).catch(() => undefined);
  const [, , uid, gid] = entry?.stdout.trim().split(':') ?? [];
  return uid === undefined || gid === undefined
    ? undefined
    : { uid: Number(uid), gid: Number(gid) };
}
