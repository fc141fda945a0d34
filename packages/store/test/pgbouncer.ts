import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@svc/service-kit/testing';
import { serverAccount } from '../src/embedded/system-user.ts';
import { untilRow } from './until-row.ts';

const PROGRAM = '/usr/sbin/pgbouncer';
const READY_MS = 30_000;
/** Fewer than any test has clients, so that they really share them. */
const SERVER_SESSIONS = 3;

/** A PgBouncer in transaction mode. */
export interface PgBouncer extends AsyncDisposable {
  /** The URL of the same database through it. */
  readonly url: string;
}

/** Starts a PgBouncer before the database with this URL, which names the directory of a socket. */
export async function startPgBouncer(databaseUrl: string): Promise<PgBouncer> {
  const [, user = '', database = '', socket = ''] =
    /^postgres:\/\/(\w+)@\/(\w+)\?host=(.+)$/.exec(databaseUrl) ?? [];
  const directory = await mkdtemp(join(tmpdir(), 'svc-pgbouncer-'));
  const account = await serverAccount();
  await chown(directory, account.uid, account.gid);
  const port = await freePort('127.0.0.1');
  const file = join(directory, 'pgbouncer.ini');
  const lines = [
    '[databases]',
    `${database} = host=${decodeURIComponent(socket)} user=${user}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    `default_pool_size = ${SERVER_SESSIONS}`,
    'max_client_conn = 200',
  ];
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o644 });
  const child = spawn(PROGRAM, [file], { ...account, cwd: directory, stdio: 'ignore' });
  const exited = once(child, 'exit');
  const url = `postgres://${user}@127.0.0.1:${port}/${database}?pgbouncer=true`;
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await untilRow(url, 'select 1', { withinMs: READY_MS, child });
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, [Symbol.asyncDispose]: stop };
}
