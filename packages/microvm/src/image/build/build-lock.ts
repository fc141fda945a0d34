import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileLockedError, lockFile } from '@svc/service-kit/process';
import type { BuildImageOptions } from './build-options.ts';
import { openWorkDirectory } from './work-directory.ts';

const RETRY_MS = 500;

/**
 * Runs `work` under a lock on the named build. Waits while another process of this machine holds the lock. `openWork`
 * creates a directory for the build, which the caller removes.
 */
export async function withBuildLock<T>(
  { template, imageDir, onProgress }: BuildImageOptions,
  name: string,
  signal: AbortSignal,
  work: (openWork: () => Promise<string>) => Promise<T>,
): Promise<T> {
  const build = `${template}-${name}`;
  for (;;) {
    try {
      return await underBuildLock(imageDir, build, () =>
        work(() => openWorkDirectory(imageDir, build)),
      );
    } catch (error) {
      if (!(error instanceof FileLockedError)) throw error;
    }
    onProgress('waiting for another build of the same image');
    await sleep(RETRY_MS, undefined, { signal });
  }
}

/** Runs `work` under the lock on a build. @throws FileLockedError when another process holds the lock */
export async function underBuildLock<T>(
  imageDir: string,
  build: string,
  work: () => Promise<T>,
): Promise<T> {
  const locks = join(imageDir, '.locks');
  await mkdir(locks, { recursive: true });
  const lock = await lockFile(join(locks, build));
  try {
    return await work();
  } finally {
    await lock.release();
  }
}
