import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { allocatedBytes, availableBytes } from '../../disk-space.ts';
import { MicrovmError } from '../../microvm-error.ts';
import type { ImageFile } from './manifest.ts';

const MB = 1_000_000;
/** Left free for the snapshot that is taken next, and for whatever else uses the disk. */
const KEPT_FREE_BYTES = 1024 ** 3;

/** Fails unless a directory has room for what it lacks of these files. @throws MicrovmError `host_disk_full` */
export async function requireSpace(directory: string, files: readonly ImageFile[]): Promise<void> {
  let needed = KEPT_FREE_BYTES;
  for (const { name, parts } of files) {
    const size = parts.reduce((sum, part) => sum + part.size, 0);
    needed += Math.max(0, size - (await allocated(join(directory, name))));
  }
  const free = await availableBytes(directory);
  if (free >= needed) return;
  const [needs, has] = [needed, free].map((bytes) => Math.ceil(bytes / MB));
  const message = `the image needs ${needs} MB of free space, and the disk of ${directory} has ${has} MB`;
  throw new MicrovmError('host_disk_full', message);
}

/**
 * Runs work that writes to a directory, which is removed if the disk turns out to be full: what is there must not keep others
 * from writing. @throws MicrovmError `host_disk_full`
 */
export async function withoutFillingDisk(
  directory: string,
  work: () => Promise<void>,
): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o755 });
  try {
    await work();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    await rm(directory, { recursive: true, force: true });
    if (error instanceof MicrovmError) throw error;
    const message = `the disk of ${directory} became full while the image was fetched`;
    throw new MicrovmError('host_disk_full', message, { cause: error });
  }
}

/** Whether a fetch failed because the disk is full. */
export function isDiskFull(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === 'host_disk_full' || code === 'ENOSPC' || code === 'EDQUOT';
}

async function allocated(path: string): Promise<number> {
  try {
    return allocatedBytes(await stat(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
