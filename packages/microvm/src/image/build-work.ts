import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * A directory to build in, of this name and more. Whoever calls holds the lock of that name: what else builds under
 * it was interrupted, and is removed.
 */
export async function openWork(imageDir: string, prefix: string): Promise<string> {
  const builds = join(imageDir, '.build');
  await mkdir(builds, { recursive: true });
  for (const name of await readdir(builds)) {
    if (name.startsWith(prefix)) await rm(join(builds, name), { recursive: true, force: true });
  }
  return mkdtemp(join(builds, prefix));
}
