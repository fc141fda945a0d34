import { randomBytes } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The end of a temporary file's name. */
const TEMPORARY = /\.\d+\.[0-9a-f]{12}\.tmp$/;

export interface AtomicWriteOptions {
  /** Permission bits. Default 0600. */
  readonly mode?: number;
  /** Whether the content must survive a crash of the machine, not only of the process. Default true. */
  readonly durable?: boolean;
}

/**
 * Writes a file atomically: a reader, or a crash, finds the old or the new content, never a part of it. If durable,
 * the new content is on disk on return.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  { mode = 0o600, durable = true }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = `${path}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await withFile(temporary, 'wx', mode, async (file) => {
      await file.writeFile(data);
      // The umask may have cleared bits.
      await file.chmod(mode);
      if (durable) await file.sync();
    });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  if (durable) await withFile(dirname(path), 'r', 0, (directory) => directory.sync());
}

/** Removes what crashes during `writeFileAtomic` have left in a directory, into which no process may be writing. */
export async function removeUnfinishedWrites(directory: string): Promise<void> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  for (const name of names.filter((name) => TEMPORARY.test(name))) {
    await rm(join(directory, name), { force: true });
  }
}

async function withFile(
  path: string,
  flags: string,
  mode: number,
  use: (file: FileHandle) => Promise<void>,
): Promise<void> {
  const file = await open(path, flags, mode);
  try {
    await use(file);
  } finally {
    await file.close();
  }
}
