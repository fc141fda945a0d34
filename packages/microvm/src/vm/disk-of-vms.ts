import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { allocatedBytes } from '../disk-space.ts';

/** Bytes of the machine's disk that the disk of a VM holds. */
export async function diskOfVm(directory: string): Promise<number> {
  return allocatedBytes(await stat(join(directory, 'files', 'disk.qcow2')));
}

/** The same of all VMs in `vmsDir`, also of those that have ended and are not removed yet. */
export async function diskOfVms(vmsDir: string): Promise<number> {
  let bytes = 0;
  for (const id of await readdir(vmsDir)) {
    bytes += await diskOfVm(join(vmsDir, id)).catch((error: NodeJS.ErrnoException) => {
      // It is being made or removed, or is no VM.
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return 0;
      throw error;
    });
  }
  return bytes;
}
