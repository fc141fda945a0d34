import { utimes } from 'node:fs/promises';

/**
 * Records that an image, a base or a snapshot is being used, as the modification time of its directory, so that it is
 * not pruned. Returns false if the directory does not exist.
 */
export async function markUsed(directory: string): Promise<boolean> {
  const now = new Date();
  try {
    await utimes(directory, now, now);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
