import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { BUILT_IMAGES } from '@svc/service-driver';
import type { BenchService } from '../service/bench-service.ts';

/** The files of a snapshot and the VM configuration that they require. */
export interface Snapshot {
  readonly qemu: string;
  /** Directory with `memory`, `state` and `disk.qcow2`. */
  readonly directory: string;
  readonly rootfs: string;
  readonly accel: string;
  readonly cpu: string;
  readonly vcpu: number;
  readonly memoryMib: number;
}

/** Finds the snapshot that the service restores, from the command line of one of its VMs. */
export async function snapshotOf(service: BenchService): Promise<Snapshot> {
  const { id } = await service.createSandbox();
  try {
    const { pid, vcpu, memoryMib } = (await service.vms()).find(({ vmId }) => vmId === id) ?? {};
    if (pid === undefined || vcpu === undefined || memoryMib === undefined) {
      throw new Error(`no VM belongs to ${id}`);
    }
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    const outside = (path: string) => path.replace(/^\/images/, BUILT_IMAGES);
    const memory = /mem-path=(\/images\/[^,]+)/.exec(after(words, '-object'))?.[1];
    const rootfs = /"filename":"(\/images\/[^"]+)"/.exec(after(words, '-blockdev'))?.[1];
    if (memory === undefined || rootfs === undefined) {
      throw new Error(
        'this QEMU restores from a copy of the memory file, which the bare restore cannot do',
      );
    }
    return {
      qemu: words.find((word) => word.endsWith('qemu-system-x86_64')) ?? 'qemu-system-x86_64',
      directory: dirname(outside(memory)),
      rootfs: outside(rootfs),
      accel: after(words, '-accel'),
      cpu: after(words, '-cpu'),
      vcpu,
      memoryMib,
    };
  } finally {
    await service.client.sandboxes.delete(id);
  }
}

/** The argument that follows the first `name`. */
function after(words: readonly string[], name: string): string {
  const word = words[words.indexOf(name) + 1];
  if (!words.includes(name) || word === undefined) throw new Error(`a VM runs without ${name}`);
  return word;
}

/** Path of a file of the snapshot. */
export function snapshotFile(
  { directory }: Snapshot,
  name: 'memory' | 'state' | 'disk.qcow2',
): string {
  return join(directory, name);
}
