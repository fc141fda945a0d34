import { mkdir } from 'node:fs/promises';
import { type FileLock, FileLockedError, lockFile } from '@svc/service-kit/process';
import { CliError } from '../../output/cli-error.ts';
import type { ServicePlaces } from '../places.ts';

/**
 * Takes the data directory for this process, until it ends, however it ends.
 * @throws CliError `already_running`
 */
export async function lockDataDirectory(places: ServicePlaces): Promise<FileLock> {
  await mkdir(places.dataDir, { recursive: true, mode: 0o700 });
  try {
    return await lockFile(places.lock);
  } catch (error) {
    if (!(error instanceof FileLockedError)) throw error;
    throw alreadyRunning(places, error.holder, error);
  }
}

/** The error of a second start on one data directory. */
export function alreadyRunning(
  places: ServicePlaces,
  pid: number | undefined,
  cause?: unknown,
): CliError {
  const holder = pid === undefined ? '' : ` (process ${pid})`;
  return new CliError('already_running', `a service already runs on ${places.dataDir}${holder}`, {
    next: '`svc status` shows it, `svc down` stops it; SVC_DATA_DIR and SVC_LISTEN start another beside it',
    cause,
  });
}
