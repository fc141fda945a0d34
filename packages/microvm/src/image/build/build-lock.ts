import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileLockedError, lockFile } from '@svc/service-kit/process';
import type { BuildImageOptions } from './build-options.ts';

const RETRY_MS = 500;

/** Runs `work` under a lock on the named build. Waits while another process of this machine holds the lock. */
export async function withBuildLock<T>(
  { template, imageDir, onProgress }: BuildImageOptions,
  name: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const locks = join(imageDir, '.locks');
  await mkdir(locks, { recursive: true });
  const path = join(locks, `${template}-${name}`);
  for (;;) {
    try {
      const lock = await lockFile(path);
      try {
        return await work();
      } finally {
        await lock.release();
      }
    } catch (error) {
      if (!(error instanceof FileLockedError)) throw error;
    }
    onProgress('waiting for another build of the same image');
    await sleep(RETRY_MS, undefined, { signal });
  }
}
