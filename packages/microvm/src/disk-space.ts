import type { Stats } from 'node:fs';
import { statfs } from 'node:fs/promises';

/** Unit of the blocks of a file, whatever the file system. See stat(2). */
const BLOCK_BYTES = 512;

/** Bytes of the disk that a file holds. */
export function allocatedBytes({ blocks }: Pick<Stats, 'blocks'>): number {
  return blocks * BLOCK_BYTES;
}

/** Bytes that are free on the file system of a directory. */
export async function availableBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
