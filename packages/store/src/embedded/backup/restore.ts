import { chown, mkdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lockFile } from '@svc/service-kit/process';
import { EmbeddedPostgres } from '../embedded-postgres.ts';
import { exists } from '../exists.ts';
import { serverAccount } from '../system-user.ts';
import { archiveSettings, backupPaths, restoreSettings, writeConf } from './archive.ts';
import { type BaseBackup, listBaseBackups } from './base-backups.ts';
import { copyTree } from './copy-tree.ts';
import { recover } from './recover.ts';
import { beginReplacement, endReplacement, undoReplacement } from './unfinished-restore.ts';

export interface RestoreOptions {
  /** Data directory of the service, which no service uses meanwhile. */
  readonly dataDirectory: string;
  readonly backups: string;
  /** Restores what was committed up to this time. Default: everything that the archive has. */
  readonly to?: Date | undefined;
}

export interface Restored {
  /** The backup that was restored. */
  readonly backup: BaseBackup;
  /** When the last change was committed that the archive had. Undefined when it had none after the backup. */
  readonly lastCommitAt: Date | undefined;
  /** Where the cluster is that was there before. Undefined when there was none. */
  readonly replaced: string | undefined;
}

/**
 * Restores the embedded database from its backups, and backs it up again: from now on, the archive continues what is
 * restored. The cluster that is there is kept beside it. It is put back after a failure, and by the next restore if this one is
 * cut off; until then, no server starts. The caller must hold the lock of the data directory.
 */
export async function restore({ dataDirectory, backups, to }: RestoreOptions): Promise<Restored> {
  const backup = choose(await listBaseBackups(backups), to);
  await mkdir(dataDirectory, { recursive: true });
  const directory = await realpath(dataDirectory);
  await undoReplacement(join(directory, 'postgres'));
  if ((await EmbeddedPostgres.runningUrl(directory)) !== undefined) {
    throw new Error('The embedded PostgreSQL is still running.');
  }
  const lock = await lockFile(backupPaths(backups).lock);
  try {
    return { backup, ...(await replace(directory, backups, { backup, to })) };
  } finally {
    await lock.release();
  }
}

function choose(found: readonly BaseBackup[], to: Date | undefined): BaseBackup {
  const backup = found.findLast(({ finishedAt }) => to === undefined || finishedAt <= to);
  if (backup !== undefined) return backup;
  throw new Error(
    found[0] === undefined
      ? 'There is no complete backup.'
      : `The first backup was complete at ${found[0].finishedAt.toISOString()}.`,
  );
}

interface Source {
  readonly backup: BaseBackup;
  readonly to: Date | undefined;
}

async function replace(
  directory: string,
  backups: string,
  source: Source,
): Promise<Omit<Restored, 'backup'>> {
  const cluster = join(directory, 'postgres');
  const unfinished = await prepare(cluster, backups, source);
  const before = `${cluster}.replaced-${new Date().toISOString().replaceAll(':', '-')}`;
  const replaced = (await exists(cluster)) ? before : undefined;
  await beginReplacement(cluster, replaced);
  if (replaced !== undefined) await rename(cluster, replaced);
  await rename(unfinished, cluster);
  try {
    const lastCommitAt = await recover(directory, backups);
    await writeConf(cluster, archiveSettings(backupPaths(backups).wal), await serverAccount());
    await endReplacement(cluster);
    return { lastCommitAt, replaced };
  } catch (error) {
    await undoReplacement(cluster);
    throw error;
  }
}

/** Copies the backup, and tells its server to read the archive. */
async function prepare(cluster: string, backups: string, { backup, to }: Source): Promise<string> {
  const account = await serverAccount();
  const { wal } = backupPaths(backups);
  const unfinished = `${cluster}.new-restore`;
  await rm(unfinished, { recursive: true, force: true });
  await copyTree(backup.cluster, unfinished, { account });
  await writeConf(unfinished, { ...archiveSettings(wal), ...restoreSettings(wal, to) }, account);
  const recovering = join(unfinished, 'recovery.signal');
  await writeFile(recovering, '');
  await chown(recovering, account.uid, account.gid);
  return unfinished;
}
