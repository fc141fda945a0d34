import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
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
const STANDBY = 'standby';
const READY = { withinMs: 60_000 };

/** A server of a pair. */
export interface PairedServer {
  readonly url: string;
  /** The file of its socket. */
  readonly socket: string;
  /** Ends it as the loss of its machine does, without a word. */
  kill(): Promise<void>;
}

/** A PostgreSQL server and a standby, without which it acknowledges no commit. */
export interface PostgresPair extends AsyncDisposable {
  readonly primary: PairedServer;
  readonly standby: PairedServer;
  /** Makes the standby a server of its own. */
  promote(): Promise<void>;
}

/** Starts both, and waits until the standby is synchronous. */
export async function startPostgresPair(): Promise<PostgresPair> {
  const root = await mkdtemp(join(tmpdir(), 'svc-pair-'));
  await chmod(root, 0o755);
  const account = await serverAccount();
  const binaries = await locateBinaries(process.getuid?.() === 0);
  const program = { root, account, binaries };
  await using started = new AsyncDisposableStack();
  started.defer(() => rm(root, { recursive: true, force: true }));
  await makeCluster(program, 'primary');
  const primary = await startServer(program, 'primary', {
    synchronous_standby_names: STANDBY,
    // The standby is a copy of this one, whose own commits must not wait for it.
    synchronous_commit: 'on',
  });
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
): Promise<PairedServer> {
  const { root, account, binaries } = program;
  const sockets = join(root, `${name}-sockets`);
  await makeOwned(sockets, program);
  const settings = {
    listen_addresses: '',
    unix_socket_directories: sockets,
    wal_level: 'replica',
    max_wal_senders: '4',
    wal_keep_size: '64MB',
    shared_buffers: '16MB',
    io_method: 'sync',
    ...own,
  };
  const child = spawn(
    join(binaries.directory, 'postgres'),
    ['-D', '.', ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])],
    { ...account, cwd: join(root, name), env: serverEnvironment(), stdio: 'ignore' },
  );
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
  return { url, socket: join(sockets, '.s.PGSQL.5432'), kill };
}

async function copyToStandby(program: Program, { url, socket }: PairedServer): Promise<void> {
  const { root, account } = program;
  const target = join(root, STANDBY);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`select pg_backup_start('pair', true)`);
    const left = new Set(['pg_wal', 'postmaster.pid', 'postmaster.opts', 'pg_replslot']);
    await copyTree(join(root, 'primary'), target, {
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
