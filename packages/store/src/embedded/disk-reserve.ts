import { execFile } from 'node:child_process';
import { rm, stat, statfs, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ALLOCATE_MS = 15_000;
const MIB = 1024 * 1024;
const RESERVE_MIB = 256;
/** With less free disk than this, a part of the reserve is given to the server. */
const RELEASE_BELOW_MIB = 64;
/** In parts, because whoever filled the disk may take the space first, and is then stopped by the full disk. */
const PART_MIB = 32;
/** With more free disk than this, the reserve is taken again. */
const TAKE_ABOVE_MIB = 1024;

/**
 * Disk that a file holds for a PostgreSQL server whose disk others fill. While the disk is full, the file shrinks, and the
 * server can go on writing until somebody makes room.
 */
export class DiskReserve {
  readonly #path: string;

  /** `path`: of the file, on the server's disk. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Takes the reserve, or releases a part, if the free disk has risen or fallen enough. Returns what it did. */
  async adjust(): Promise<'taken' | 'released' | undefined> {
    const { bavail, bsize } = await statfs(dirname(this.#path));
    const availableMib = (bavail * bsize) / MIB;
    if (availableMib < RELEASE_BELOW_MIB) {
      const heldMib = await this.#heldMib();
      if (heldMib === 0) return undefined;
      await truncate(this.#path, Math.max(0, heldMib - PART_MIB) * MIB);
      return 'released';
    }
    if (availableMib > TAKE_ABOVE_MIB && (await this.#heldMib()) < RESERVE_MIB) {
      const size = ['--length', `${RESERVE_MIB}MiB`];
      await run('fallocate', ['--posix', ...size, this.#path], { timeout: ALLOCATE_MS });
      return 'taken';
    }
    return undefined;
  }

  /** Removes the file. */
  async release(): Promise<void> {
    await rm(this.#path, { force: true });
  }

  async #heldMib(): Promise<number> {
    try {
      return (await stat(this.#path)).size / MIB;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
      throw error;
    }
  }
}
