import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { copyTree } from '../src/embedded/backup/copy-tree.ts';
import { locateBinaries, type PostgresBinaries } from '../src/embedded/binaries.ts';
import { CLUSTER_USER, serverEnvironment } from '../src/embedded/cluster.ts';
import { socketUrl } from '../src/embedded/socket-directory.ts';
import { type Account, serverAccount } from '../src/embedded/system-user.ts';
import { untilRow } from './until-row.ts';

const run = promisify(execFile);
const PRIMARY = 'primary';
const STANDBY = 'standby';
const READY = { withinMs: 60_000 };

/** A machine that a server listens on, besides its socket. Its neighbours in the network are trusted. */
export interface ServerMachine {
  /** The server listens on port 5432 of it. */
  readonly address: string;
  /** Program and arguments that run a command on the machine. */
  readonly launcher: readonly string[];
}

/** A server of a test. */
export interface TestServer {
  /** Connects to its socket. */
  readonly url: string;
  /** The file of its socket. */
  readonly socket: string;
  /** May do everything, and needs no password. */
  readonly username: string;
  /** Ends it as the loss of its machine does, without a word. */
  kill(): Promise<void>;
}

/** A PostgreSQL server and a standby, without which it acknowledges no commit. */
export interface PostgresPair extends AsyncDisposable {
  readonly primary: TestServer;
  readonly standby: TestServer;
  /** Makes the standby a server of its own. */
  promote(): Promise<void>;
}

/** Starts a server without a standby on a machine. */
export async function startPostgresOn(
  machine: ServerMachine,
): Promise<TestServer & AsyncDisposable> {
  await using started = new AsyncDisposableStack();
  const program = await openProgram(started);
  await makeCluster(program, PRIMARY);
  const server = await startServer(program, PRIMARY, {}, machine);
  started.defer(() => server.kill());
  const parts = started.move();
  return { ...server, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** Starts both, the primary on a machine if one is given, and waits until the standby is synchronous. */
export async function startPostgresPair(machine?: ServerMachine): Promise<PostgresPair> {
  await using started = new AsyncDisposableStack();
  const program = await openProgram(started);
  await makeCluster(program, PRIMARY);
  const commits = {
    synchronous_standby_names: STANDBY,
    // The standby is a copy of this one, whose own commits must not wait for it.
    synchronous_commit: 'on',
  };
  const primary = await startServer(program, PRIMARY, commits, machine);
  started.defer(() => primary.kill());
  await copyToStandby(program, primary);
  const standby = await startServer(program, STANDBY, {});
  started.defer(() => standby.kill());
  await untilRow(primary.url, `select from pg_stat_replication where sync_state = 'sync'`, READY);
  const parts = started.move();
  return {
    primary,
    standby,
    promote: async () => {
      await untilRow(standby.url, 'select from pg_promote()', READY);
      await untilRow(standby.url, 'select where not pg_is_in_recovery()', READY);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

interface Program {
  readonly root: string;
  readonly account: Account;
  readonly binaries: PostgresBinaries;
}

async function openProgram(started: AsyncDisposableStack): Promise<Program> {
  const root = await mkdtemp(join(tmpdir(), 'svc-postgres-'));
  started.defer(() => rm(root, { recursive: true, force: true }));
  await chmod(root, 0o755);
  const account = await serverAccount();
  return { root, account, binaries: await locateBinaries(process.getuid?.() === 0) };
}

async function makeOwned(directory: string, { account }: Program): Promise<void> {
  await mkdir(directory, { mode: 0o700 });
  await chown(directory, account.uid, account.gid);
}

async function makeCluster(program: Program, name: string): Promise<void> {
  const { root, account, binaries } = program;
  const directory = join(root, name);
  await makeOwned(directory, program);
  const settings = ['--username', CLUSTER_USER, '--auth=trust', '--encoding=UTF8', '--locale=C'];
  await run(join(binaries.directory, 'initdb'), ['-D', '.', '--no-sync', ...settings], {
    ...account,
    cwd: directory,
    env: serverEnvironment(),
  });
}

async function startServer(
  program: Program,
  name: string,
  own: Readonly<Record<string, string>>,
  machine?: ServerMachine,
): Promise<TestServer> {
  const { root, account, binaries } = program;
  const sockets = join(root, `${name}-sockets`);
  await makeOwned(sockets, program);
  if (machine !== undefined) {
    await appendFile(join(root, name, 'pg_hba.conf'), 'host all all samenet trust\n');
  }
  const settings = {
    listen_addresses: machine?.address ?? '',
    unix_socket_directories: sockets,
    wal_level: 'replica',
    max_wal_senders: '4',
    wal_keep_size: '64MB',
    shared_buffers: '16MB',
    io_method: 'sync',
    ...own,
  };
  const options = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const server = [join(binaries.directory, 'postgres'), '-D', '.', ...options];
  // A machine is entered before privileges are dropped.
  const { uid, gid } = account;
  const drop = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  const [command = '', ...words] =
    machine === undefined ? server : [...machine.launcher, ...drop, ...server];
  const child = spawn(command, words, {
    ...(machine === undefined ? account : {}),
    cwd: join(root, name),
    env: serverEnvironment(),
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  const url = socketUrl(sockets);
  const kill = async () => {
    child.kill('SIGQUIT');
    await exited;
  };
  try {
    await untilRow(url, 'select', { ...READY, child });
  } catch (error) {
    await kill();
    throw error;
  }
  return { url, socket: join(sockets, '.s.PGSQL.5432'), username: CLUSTER_USER, kill };
}

async function copyToStandby(program: Program, { url, socket }: TestServer): Promise<void> {
  const { root, account } = program;
  const target = join(root, STANDBY);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`select pg_backup_start('pair', true)`);
    const left = new Set(['pg_wal', 'postmaster.pid', 'postmaster.opts', 'pg_replslot']);
    await copyTree(join(root, PRIMARY), target, {
      account,
      leavesOut: (path) => left.has(path),
    });
    const { rows } = await client.query<{ labelfile: string }>(
      'select labelfile from pg_backup_stop(false)',
    );
    const from = `host=${socket.replace(/\/[^/]+$/, '')} user=${CLUSTER_USER} application_name=${STANDBY}`;
    const files = {
      backup_label: rows[0]?.labelfile ?? '',
      'standby.signal': '',
      'postgresql.auto.conf': `primary_conninfo = '${from}'\n`,
    };
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(target, name), content);
      await chown(join(target, name), account.uid, account.gid);
    }
  } finally {
    await client.end();
  }
}
