import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type FileLock,
  FileLockedError,
  lockFile,
  removeUnfinishedWrites,
} from '@svc/service-kit/process';
import { CliError } from '../output/errors.ts';
import type { ServicePaths } from './paths.ts';

/** Where files are replaced for as long as the service lasts. Those of a VM or a session are removed with its directory. */
const WRITTEN = ['.', 'tls', 'usage', 'logs/agents'];

/**
 * Locks the data directory for this process, and removes what a crash has left of unfinished writes. The lock is released
 * at the latest when the process exits, even if it is killed.
 * @throws CliError `already_running`
 */
export async function lockDataDirectory(paths: ServicePaths): Promise<FileLock> {
  await mkdir(paths.dataDir, { recursive: true, mode: 0o700 });
  const lock = await lockFile(paths.lock).catch((error: unknown) => {
    if (!(error instanceof FileLockedError)) throw error;
    throw alreadyRunning(paths, error.holder, error);
  });
  try {
    for (const name of WRITTEN) await removeUnfinishedWrites(join(paths.dataDir, name));
    return lock;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Creates the error for a second start on the same data directory. */
export function alreadyRunning(
  paths: ServicePaths,
  pid: number | undefined,
  cause?: unknown,
): CliError {
  const holder = pid === undefined ? '' : ` (process ${pid})`;
  return new CliError('already_running', `a service already runs on ${paths.dataDir}${holder}`, {
    next: '`svc status` shows it, `svc down` stops it; to start another one, set SVC_DATA_DIR and SVC_LISTEN',
    cause,
  });
}
