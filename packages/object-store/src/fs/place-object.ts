import { mkdir, open, realpath, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ObjectStoreError } from '../object-store-error.ts';
import { isMissing } from './fs-failures.ts';

/** Another call may remove an empty directory this often between its creation and its use. */
const ATTEMPTS = 10;

/** Moves a complete file to its name, durably. `root` is the directory above all objects. */
export async function placeObject(temporary: string, target: string, root: string): Promise<void> {
  const directory = dirname(target);
  for (let attempt = 1; ; attempt += 1) {
    const created = await mkdir(directory, { recursive: true, mode: 0o700 });
    try {
      await refuseLinks(directory);
      await rename(temporary, target);
      await syncDirectories(directory, created === undefined ? directory : dirname(created), root);
      return;
    } catch (error) {
      if (attempt >= ATTEMPTS || !isMissing(error)) throw error;
    }
  }
}

/**
 * Refuses a directory that is reached through a symbolic link.
 * @throws ObjectStoreError `object_store_unavailable`
 */
export async function refuseLinks(directory: string): Promise<void> {
  if ((await realpath(directory)) !== directory) {
    throw new ObjectStoreError(
      'object_store_unavailable',
      'a directory of the object store is a symbolic link',
    );
  }
}

/** Writes the entries of `lowest` and of the directories above it, up to `highest`, to disk. */
async function syncDirectories(lowest: string, highest: string, root: string): Promise<void> {
  for (let directory = lowest; ; directory = dirname(directory)) {
    const handle = await open(directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (directory === highest || directory === root) return;
  }
}
