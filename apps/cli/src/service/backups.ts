import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, loadServiceConfig } from '@svc/config';
import { FileLockedError, lockFile } from '@svc/service-kit/process';
import { type BaseBackup, backUp, type Restored, restore } from '@svc/store';
import { CliError } from '../output/errors.ts';
import { withDatabase } from './operator-database.ts';
import { servicePaths } from './paths.ts';

/**
 * Backs the embedded database up, whether or not the service runs.
 * @throws CliError `no_backups`, `no_database`, `backup_failed`
 */
export async function backUpDatabase(keep: number): Promise<BaseBackup> {
  const config = loadServiceConfig();
  const backups = backupDirectory(config);
  const cluster = join(config.dataDir, 'postgres');
  return withDatabase(config, (url, signal) =>
    backUp({ url, cluster, backups, keep, ...(signal && { signal }) }).catch((cause: unknown) => {
      throw failure('backup_failed', cause);
    }),
  );
}

/**
 * Restores the embedded database, of a service that does not run.
 * @param to the time; default: everything that there is
 * @throws CliError `no_backups`, `service_running`, `restore_failed`
 */
export async function restoreDatabase(to: Date | undefined): Promise<Restored> {
  const config = loadServiceConfig();
  const backups = backupDirectory(config);
  await mkdir(config.dataDir, { recursive: true });
  const lock = await lockFile(servicePaths(config.dataDir).lock).catch((error: unknown) => {
    if (!(error instanceof FileLockedError)) throw error;
    throw new CliError('service_running', 'the service is running', {
      next: 'stop it with `svc down --keep-sandboxes`, which keeps its sandboxes',
    });
  });
  try {
    return await restore({ dataDirectory: config.dataDir, backups, to });
  } catch (cause) {
    throw failure('restore_failed', cause);
  } finally {
    await lock.release();
  }
}

function backupDirectory({ databaseUrl: url, backupDir }: Config): string {
  if (url === undefined && backupDir !== undefined) return backupDir;
  throw new CliError(
    'no_backups',
    url === undefined ? 'SVC_BACKUP_DIR is not set' : 'the database is not the embedded one',
    { next: 'see “Backup and restore” in docs/operations.md' },
  );
}

function failure(code: string, cause: unknown): CliError {
  return new CliError(code, cause instanceof Error ? cause.message : String(cause), {
    next: 'see “Backup and restore” in docs/operations.md',
    cause,
  });
}
