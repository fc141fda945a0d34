import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';

/** Every entry below a directory, in the order of their names, with its kind, mode, time in milliseconds and content. */
export async function contentOf(root: string): Promise<Record<string, unknown>> {
  const names = await readdir(root, { recursive: true, encoding: 'latin1' });
  const entries = names.sort().map(async (name) => {
    const path = Buffer.from(`${root}/${name}`, 'latin1');
    const status = await lstat(path, { bigint: true });
    const mode = (status.mode & 0o7777n).toString(8);
    // Exact: as a floating-point number of milliseconds, the last 100 ns of a millisecond are the next one.
    const mtime = Number(status.mtimeMs);
    if (status.isSymbolicLink()) return [name, await readlink(path)] as const;
    if (status.isDirectory()) return [name, [mode, mtime]] as const;
    const digest = createHash('sha256').update(await readFile(path));
    return [name, [mode, mtime, digest.digest('hex')]] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}
