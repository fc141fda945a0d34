import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Creates a directory for a build. Its name begins with `prefix`. The caller holds the lock of this build, so older
 * directories with the same prefix belong to interrupted builds and are removed.
 */
export async function openWorkDirectory(imageDir: string, prefix: string): Promise<string> {
  const builds = join(imageDir, '.build');
  await mkdir(builds, { recursive: true });
  for (const name of await readdir(builds)) {
    if (name.startsWith(prefix)) await rm(join(builds, name), { recursive: true, force: true });
  }
  return mkdtemp(join(builds, prefix));
}
