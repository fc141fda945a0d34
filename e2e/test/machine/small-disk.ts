import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rm, statfs, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COMMAND_MS = 60_000;
const MIB = 1024 * 1024;

/** A separate file system for a data directory, which a test may fill. */
export class SmallDisk implements AsyncDisposable {
  /** Mount point. */
  readonly path: string;
  readonly #parent: string;

  private constructor(parent: string, path: string) {
    this.#parent = parent;
    this.path = path;
  }

  static async make(mebibytes: number): Promise<SmallDisk> {
    const parent = await mkdtemp(join(tmpdir(), 'svc-small-disk-'));
    const [image, path] = [join(parent, 'image'), join(parent, 'mounted')];
    await (await open(image, 'w')).close();
    await truncate(image, mebibytes * MIB);
    // No blocks are reserved for root, so that a full disk is full for the service too.
    await run('mke2fs', ['-q', '-t', 'ext4', '-m', '0', image], { timeout: COMMAND_MS });
    await mkdir(path);
    await run('mount', ['-o', 'loop', image, path], { timeout: COMMAND_MS });
    return new SmallDisk(parent, path);
  }

  /** Fills the file system, completely or until `leaveMib` are free. */
  async fill(leaveMib = 0): Promise<void> {
    const filler = await open(this.#filler, 'a');
    try {
      const { bavail, bsize } = await statfs(this.path);
      const { size } = await filler.stat();
      const length = size + bavail * bsize - leaveMib * MIB;
      await run('fallocate', ['--length', String(length), this.#filler], {
        timeout: COMMAND_MS,
      }).catch(() => undefined);
      if (leaveMib === 0) await writeUntilFull(filler);
    } finally {
      await filler.close();
    }
  }

  /** Undoes {@link fill}. */
  async free(): Promise<void> {
    await rm(this.#filler, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run('umount', [this.path], { timeout: COMMAND_MS });
    await rm(this.#parent, { recursive: true, force: true });
  }

  get #filler(): string {
    return join(this.path, 'filler');
  }
}

/** Takes the last blocks, which one large allocation cannot get. */
async function writeUntilFull(file: Awaited<ReturnType<typeof open>>): Promise<void> {
  const block = Buffer.alloc(4096, 1);
  try {
    for (;;) await file.appendFile(block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
