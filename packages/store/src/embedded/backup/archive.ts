import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeFileAtomic } from '@svc/service-kit/process';
import { makeOwned, serverEnvironment } from '../cluster.ts';
import type { Account } from '../system-user.ts';

const run = promisify(execFile);
const CHECK_MS = 10_000;
/** A segment is archived at the latest after this long, in seconds, so that a lost machine loses no more. */
const ARCHIVE_SECONDS = 60;
/** PostgreSQL reads this file of a cluster last; nothing else writes it here. */
const CONF = 'postgresql.auto.conf';

/** Where the backups of a cluster are. */
export interface BackupPaths {
  /** Directories with a copy of the cluster each. */
  readonly base: string;
  /** Segments of the write-ahead log, compressed. */
  readonly wal: string;
  /** The identifier of the cluster whose backups these are. */
  readonly owner: string;
  /** Locked by the process that makes or restores a backup. */
  readonly lock: string;
}

export function backupPaths(directory: string): BackupPaths {
  return {
    base: join(directory, 'base'),
    wal: join(directory, 'wal'),
    owner: join(directory, 'system-identifier'),
    lock: join(directory, 'backup.lock'),
  };
}

/**
 * Has the server of a cluster archive its write-ahead log from its next start on; without a directory, no longer.
 * Throws when the directory has the backups of another cluster, or the server's account cannot write there.
 */
export async function configureArchive(
  cluster: string,
  backups: string | undefined,
  account: Account,
): Promise<void> {
  if (backups === undefined) return writeConf(cluster, {}, account);
  const { base, wal, owner } = backupPaths(backups);
  // The server's account must be able to pass.
  if ((await mkdir(backups, { recursive: true })) !== undefined) await chmod(backups, 0o711);
  await mkdir(base, { recursive: true, mode: 0o700 });
  await claim(owner, await systemIdentifier(cluster), backups);
  await makeOwned(wal, account);
  await assertWritable(wal, account);
  await writeConf(cluster, archiveSettings(wal), account);
}

/** Whether the server of a cluster archives its write-ahead log, or is about to read an archive. */
export async function usesArchive(cluster: string): Promise<boolean> {
  return /^(archive|restore)_command/m.test(await readFile(join(cluster, CONF), 'utf8'));
}

export type ServerSettings = Readonly<Record<string, string>>;

/** Replaces the settings in the configuration file of a cluster. */
export async function writeConf(
  cluster: string,
  settings: ServerSettings,
  account: Account,
): Promise<void> {
  const file = join(cluster, CONF);
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${quoted(value)}\n`);
  await writeFileAtomic(file, lines.join(''));
  await chown(file, account.uid, account.gid);
}

export function archiveSettings(wal: string): ServerSettings {
  const directory = forShell(wal);
  // The archive has a segment as a whole or not at all, and a different one of the same name is never replaced.
  const command = [
    `f=${directory}/%f`,
    'if [ -f "$f.gz" ]; then gzip -dc "$f.gz" | cmp -s - "%p"',
    `else gzip -1c "%p" > "$f.part" && sync "$f.part" && mv "$f.part" "$f.gz" && sync ${directory}; fi`,
  ].join('; ');
  return {
    archive_mode: 'on',
    archive_timeout: String(ARCHIVE_SECONDS),
    archive_command: command,
  };
}

/** The settings that have a server read an archive. */
export function restoreSettings(wal: string, to: Date | undefined): ServerSettings {
  const directory = forShell(wal);
  return {
    restore_command: `[ -f ${directory}/%f.gz ] && gzip -dc ${directory}/%f.gz > "%p"`,
    recovery_target_action: 'promote',
    // The log goes on from the backup as it did then: not as it did after a restore to an earlier time.
    recovery_target_timeline: 'current',
    ...(to === undefined ? {} : { recovery_target_time: timeForServer(to) }),
  };
}

/** The number that PostgreSQL gave a cluster when it was created: the first 8 bytes of its control file. */
export async function systemIdentifier(cluster: string): Promise<string> {
  const file = await open(join(cluster, 'global', 'pg_control'));
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, 0);
    if (bytesRead < 8) throw new Error(`The control file of the cluster in ${cluster} is damaged.`);
    return String(buffer.readBigUInt64LE());
  } finally {
    await file.close();
  }
}

async function claim(file: string, identifier: string, backups: string): Promise<void> {
  const owner = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (owner === undefined) return writeFileAtomic(file, identifier);
  if (owner === identifier) return;
  throw new Error(
    `${backups} has the backups of another database: restore it with \`svc restore\`, or set SVC_BACKUP_DIR to another directory.`,
  );
}

async function assertWritable(directory: string, account: Account): Promise<void> {
  await run('test', ['-w', directory], {
    ...account,
    env: serverEnvironment(),
    timeout: CHECK_MS,
  }).catch((cause: unknown) => {
    throw new Error(
      `The account of the embedded PostgreSQL cannot write to ${directory}: make the directories above it searchable, or set SVC_BACKUP_DIR to another one.`,
      { cause },
    );
  });
}

/** With a numeric offset: when PostgreSQL reads its configuration, it does not know abbreviations of time zones yet, nor `Z`. */
function timeForServer(time: Date): string {
  return time.toISOString().replace('Z', '+00');
}

/** One word for the shell, in which PostgreSQL replaces nothing. */
function forShell(path: string): string {
  return `'${path.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`;
}

function quoted(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
