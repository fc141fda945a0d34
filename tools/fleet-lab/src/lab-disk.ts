import { mkdir, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '@svc/service-kit/process';

const MIB = 1024 * 1024;
const FILLER = 'filler';
/** More than the file system needs to note where a large file is. */
const REST_BYTES = 32 * MIB;
const BLOCK_BYTES = 4096;

/** A disk of its own for one machine: an ext4 file system in a sparse file, mounted at `path`. */
export class LabDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** @param path the directory to mount it at, which is made; the file lies beside it */
  static async mount(path: string, mib: number): Promise<LabDisk> {
    const image = `${path}.ext4`;
    const file = await open(image, 'w');
    await file.truncate(mib * MIB);
    await file.close();
    // Without blocks that only root may use, so that a full disk is full for everyone.
    await runProgram('mkfs.ext4', ['-q', '-m', '0', image]);
    await mkdir(path, { recursive: true });
    await runProgram('mount', ['-o', 'loop', image, path]);
    return new LabDisk(path);
  }

  /** Takes all that is free. */
  async fill(): Promise<void> {
    const { bavail, bsize } = await statfs(this.path);
    const filler = join(this.path, FILLER);
    await runProgram('fallocate', ['-l', String(bavail * bsize - REST_BYTES), filler]);
    const file = await open(filler, 'a');
    try {
      for (;;) await file.write(Buffer.alloc(BLOCK_BYTES));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      await file.close();
    }
  }

  /** Gives back what {@link fill} took. */
  async clear(): Promise<void> {
    await rm(join(this.path, FILLER), { force: true });
  }

  /** Lazily, since namespaces of other processes may still have the mount. */
  async [Symbol.asyncDispose](): Promise<void> {
    await runProgram('umount', ['--lazy', this.path]);
  }
}
