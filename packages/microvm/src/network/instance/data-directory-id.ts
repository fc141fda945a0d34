import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit/process';

const FILE = 'data-directory-id';

/**
 * The id of a data directory, generated on first use. It tells the directory from a later one at the same path.
 * The caller must be the only service on `dataDir`.
 */
export async function ensureDataDirectoryId(dataDir: string): Promise<string> {
  const known = await readDataDirectoryId(dataDir);
  if (known !== undefined) return known;
  const id = randomUUID();
  await writeFileAtomic(join(dataDir, FILE), id);
  return id;
}

/** The id of a data directory. Undefined when it has none yet, or does not exist. */
export async function readDataDirectoryId(dataDir: string): Promise<string | undefined> {
  try {
    return await readFile(join(dataDir, FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}
