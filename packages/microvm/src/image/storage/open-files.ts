import { readdir, stat } from 'node:fs/promises';

/** A file, whatever its name: the numbers of its device and inode. */
export function inodeOf({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev}:${ino}`;
}

/** The files that processes of this machine have open, such as VMs their disks. Sees those of its own user, as root all. */
export async function openFiles(): Promise<ReadonlySet<string>> {
  const open = new Set<string>();
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const directory = `/proc/${pid}/fd`;
    for (const fd of await ignoringGone(readdir(directory), [])) {
      const info = await ignoringGone(stat(`${directory}/${fd}`), undefined);
      if (info?.isFile()) open.add(inodeOf(info));
    }
  }
  return open;
}

/** Processes end and close files while they are looked at. */
async function ignoringGone<T>(reading: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(code)) return otherwise;
    throw error;
  }
}
