import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** What `mkdtemp` appends to a name. */
const RANDOM_PART = /-[A-Za-z0-9]{6}$/;

/**
 * Creates a directory for a build. The caller holds the lock of the build, so older directories of it belong to
 * interrupted attempts and are removed.
 */
export async function openWorkDirectory(imageDir: string, build: string): Promise<string> {
  const works = worksDirectory(imageDir);
  await mkdir(works, { recursive: true });
  await removeWorkDirectories(imageDir, build);
  return mkdtemp(join(works, `${build}-`));
}

/** Removes the directories of a build. The caller holds its lock. */
export async function removeWorkDirectories(imageDir: string, build: string): Promise<void> {
  const works = worksDirectory(imageDir);
  for (const name of await readdir(works)) {
    if (buildOf(name) === build) await rm(join(works, name), { recursive: true, force: true });
  }
}

/** The builds that have directories, whether or not they are still running. */
export async function buildsWithDirectories(imageDir: string): Promise<string[]> {
  try {
    return [...new Set((await readdir(worksDirectory(imageDir))).map(buildOf))];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function worksDirectory(imageDir: string): string {
  return join(imageDir, '.builds');
}

function buildOf(directory: string): string {
  return directory.replace(RANDOM_PART, '');
}
