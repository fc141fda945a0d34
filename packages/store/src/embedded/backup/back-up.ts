import { execFile } from 'node:child_process';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { lockFile } from '@svc/service-kit/process';
import pg from 'pg';
import { archiveSettings, backupPaths } from './archive.ts';
import {
  type BaseBackup,
  listBaseBackups,
  MANIFEST,
  type Manifest,
  prune,
  removeBrokenOff,
  UNFINISHED,
} from './base-backups.ts';
import { copyTree } from './copy-tree.ts';

const run = promisify(execFile);
/** For the checkpoint before, and for the archive to have the segments written meanwhile. */
const SERVER_MS = 600_000;
const SYNC_MS = 600_000;
const CONNECT_MS = 5_000;

/** Contents that belong to the running server, or that the archive has. */
const LEFT_OUT = new Set([
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_wal',
  'postmaster.opts',
  'postmaster.pid',
]);

export interface BackupOptions {
  /** URL of the running server. */
  readonly url: string;
  readonly cluster: string;
  /** Where it archives its write-ahead log. */
  readonly backups: string;
  /** How many backups to keep, with this one. Default: all. */
  readonly keep?: number;
  /** Breaks the backup off, between two files. */
  readonly signal?: AbortSignal;
}

/**
 * Copies the cluster of a running server, and removes older copies. Together with the archive of the write-ahead log, the
 * copy can be restored to any time after it. Throws when the server does not archive there, or another process makes or
 * restores a backup.
 */
export async function backUp(options: BackupOptions): Promise<BaseBackup> {
  const client = new pg.Client({
    connectionString: options.url,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: SERVER_MS,
    query_timeout: SERVER_MS + CONNECT_MS,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await assertArchiving(client, options.backups);
    const lock = await lockFile(backupPaths(options.backups).lock);
    try {
      return await backUpLocked(client, options);
    } finally {
      await lock.release();
    }
  } finally {
    await client.end();
  }
}

/** The same for a caller that has a connection to the server and holds the lock of the backups. */
export async function backUpLocked(
  client: pg.Client,
  { cluster, backups, keep = Number.POSITIVE_INFINITY, signal }: Omit<BackupOptions, 'url'>,
): Promise<BaseBackup> {
  await removeBrokenOff(backups);
  const name = new Date().toISOString().replaceAll(':', '-');
  const target = join(backupPaths(backups).base, name);
  const unfinished = `${target}${UNFINISHED}`;
  try {
    await copyCluster(client, cluster, unfinished, signal);
    await rename(unfinished, target);
  } catch (error) {
    // It may have filled the disk, which the archive needs. If it cannot be removed, the next backup tries again.
    await rm(unfinished, { recursive: true, force: true }).catch(() => undefined);
    throw error;
  }
  await run('sync', [dirname(target)], { timeout: SYNC_MS });
  await prune(backups, keep);
  const made = (await listBaseBackups(backups)).find((one) => one.name === name);
  if (made === undefined) throw new Error(`The backup ${name} is gone.`);
  return made;
}

async function assertArchiving(client: pg.Client, backups: string): Promise<void> {
  const { rows } = await client.query<{ archive_command: string }>('show archive_command');
  const { archive_command: expected } = archiveSettings(backupPaths(backups).wal);
  if (rows[0]?.archive_command === expected) return;
  throw new Error(
    `PostgreSQL does not archive its log in ${backups} yet: set SVC_BACKUP_DIR and restart the service.`,
  );
}

async function copyCluster(
  client: pg.Client,
  cluster: string,
  target: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  await mkdir(target, { mode: 0o700 });
  const copied = join(target, 'cluster');
  // The session ends the backup if this process does not.
  await client.query(`select pg_backup_start('svc', true)`);
  await copyTree(cluster, copied, {
    signal,
    leavesOut: (path) =>
      LEFT_OUT.has(path) || path.split('/').at(-1)?.startsWith('pgsql_tmp') === true,
  });
  const { rows } = await client.query<{ labelfile: string }>(
    'select labelfile from pg_backup_stop(true)',
  );
  const label = rows[0]?.labelfile ?? '';
  const firstSegment = /^START WAL LOCATION: .*\(file ([0-9A-F]{24})\)$/m.exec(label)?.[1];
  if (firstSegment === undefined) throw new Error('PostgreSQL gave the backup no start.');
  await writeFile(join(copied, 'backup_label'), label, { mode: 0o600 });
  const manifest: Manifest = { finished_at: await serverTime(client), first_segment: firstSegment };
  await writeFile(join(target, MANIFEST), JSON.stringify(manifest));
  await run('sync', ['--file-system', target], { timeout: SYNC_MS });
}

async function serverTime(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now');
  return (rows[0]?.now ?? new Date()).toISOString();
}
