import { chmod, chown, copyFile, mkdir, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Account } from '../system-user.ts';

export interface CopyOptions {
  /** The owner of the copies. Default: this process. */
  readonly account?: Account;
  /** Whether to leave out a file, or what is in a directory. By its path in the tree. */
  readonly leavesOut?: (path: string) => boolean;
  /** Stops the copying, between two files. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Copies a directory tree, which a server may be changing meanwhile: what has gone away when its turn comes is left out.
 * The copies can be read by their owner only.
 */
export async function copyTree(
  source: string,
  target: string,
  { account, leavesOut = () => false, signal }: CopyOptions = {},
): Promise<void> {
  const own = async (path: string) => {
    if (account !== undefined) await chown(path, account.uid, account.gid);
  };
  const copy = async (from: string, to: string): Promise<void> => {
    await mkdir(to, { mode: 0o700 });
    await own(to);
    for (const entry of await readdir(from, { withFileTypes: true })) {
      signal?.throwIfAborted();
      const [path, copied] = [join(from, entry.name), join(to, entry.name)];
      const isLeftOut = leavesOut(relative(source, path));
      try {
        if (entry.isDirectory() && isLeftOut) {
          await mkdir(copied, { mode: 0o700 });
          await own(copied);
        } else if (entry.isDirectory()) {
          await copy(path, copied);
        } else if (!isLeftOut) {
          await copyFile(path, copied);
          await chmod(copied, 0o600);
          await own(copied);
        }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  };
  await copy(source, target);
}
