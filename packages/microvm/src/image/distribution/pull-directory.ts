import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FileLockedError } from '@svc/service-kit/process';
import { underBuildLock } from '../build/build-lock.ts';
import { imageDirectory } from '../image-store.ts';

/** An interrupted pull that nobody has gone on with for so long is given up. */
const ABANDONED_MS = 24 * 3_600_000;

/** Where the files of an image are while they are being fetched. It outlasts a crash, so that the next attempt goes on there. */
export function pullDirectory(imageDir: string, template: string, id: string): string {
  return join(imageDir, '.pulls', `${template}-${id}`);
}

/** Removes what interrupted pulls left, once it is a day old or their images are there. */
export async function removeAbandonedPulls(imageDir: string): Promise<void> {
  const pulls = join(imageDir, '.pulls');
  const names = await readdir(pulls).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  for (const name of names) {
    try {
      // The lock of the image's build.
      await underBuildLock(imageDir, name, async () => {
        const directory = join(pulls, name);
        const end = name.lastIndexOf('-');
        const image = imageDirectory(imageDir, name.slice(0, end), name.slice(end + 1));
        if ((await exists(image)) || (await isOld(directory))) {
          await rm(directory, { recursive: true, force: true });
        }
      });
    } catch (error) {
      // It is being fetched.
      if (!(error instanceof FileLockedError)) throw error;
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return (await modifiedMs(path)) !== undefined;
}

async function isOld(directory: string): Promise<boolean> {
  const modified = await modifiedMs(directory);
  return modified !== undefined && Date.now() - modified > ABANDONED_MS;
}

async function modifiedMs(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
