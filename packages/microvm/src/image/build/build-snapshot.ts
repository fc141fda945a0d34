import { chmod, chown, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { HostResources } from '../../resources/host-resources.ts';
import { openHostResources } from '../../resources/open-host-resources.ts';
import type { VmShape } from '../../vm-shape.ts';
import { resourceLimits } from '../../vmm/resource-limits.ts';
import type { Image } from '../image.ts';
import { findSnapshot, snapshotDirectory } from '../snapshot-directory.ts';
import { withBuildLock } from './build-lock.ts';
import type { BuildImageOptions } from './build-options.ts';
import { lowerPriority } from './lower-priority.ts';
import { warmUp } from './warm-up.ts';

const silentLogger = { info: () => undefined, warn: () => undefined, error: () => undefined };

export interface BuildSnapshotOptions extends Omit<BuildImageOptions, 'template'> {
  /** Runs the VM at the lowest priority. Default: false. */
  readonly background?: boolean;
}

/**
 * Takes the snapshot of an image in the given shape, unless this machine has it: boots the image, warms it up and
 * freezes it. The VM runs in an instance of its own, as confined as a sandbox.
 */
export async function buildSnapshot(
  image: Image,
  shape: VmShape,
  options: BuildSnapshotOptions,
  signal: AbortSignal,
): Promise<void> {
  const { imageDir, kvmProbeMs } = options;
  const lockOptions = { ...options, template: image.template };
  const lockName = `${image.id}-${shape.vcpu}x${shape.memoryMib}`;
  await withBuildLock(lockOptions, lockName, signal, async (openWork) => {
    const work = await openWork();
    try {
      const resources = await openHostResources(
        { dataDir: work, imageDir, logger: silentLogger, slotPoolSize: 1, kvmProbeMs },
        signal,
      );
      try {
        const { snapshotKey } = resources.vmm;
        if (await findSnapshot(image, snapshotKey, shape)) return;
        options.onProgress('booting the image for its snapshot');
        const frozen = await bootAndFreeze(resources, image, shape, options, signal);
        const target = snapshotDirectory(image, snapshotKey, shape);
        await mkdir(dirname(target), { recursive: true });
        await rename(frozen, target);
      } finally {
        await resources.close({ keep: [] });
      }
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
}

/** Returns a directory that contains only `memory`, `state` and `disk.qcow2`. */
async function bootAndFreeze(
  { slots, jail, vmm, sshKey }: HostResources,
  image: Image,
  shape: VmShape,
  { onProgress, background = false }: BuildSnapshotOptions,
  signal: AbortSignal,
): Promise<string> {
  const id = 'm_build';
  const slot = await slots.take(signal);
  try {
    await jail.prepare(id, slot);
    const confinement = jail.confine(id, slot, resourceLimits(shape));
    const vm = await vmm.boot(
      {
        ...shape,
        confinement,
        kernel: jail.imagePath(image.kernelPath),
        initrd: jail.imagePath(image.initrdPath),
        rootfs: image.disk.map((file) => jail.imagePath(file)),
      },
      signal,
    );
    try {
      await confinement.limit(vm.identity.pid);
      if (background) await lowerPriority(vm.identity.pid);
      await warmUp(slot.address, sshKey, image.warmUp, onProgress, signal);
      onProgress('taking the snapshot');
      await vm.freeze(signal);
    } finally {
      await vm.kill();
    }
    const { directory } = confinement;
    await rm(join(directory, 'migration'), { force: true });
    for (const name of ['memory', 'state', 'disk.qcow2']) {
      await chown(join(directory, name), 0, 0);
      await chmod(join(directory, name), 0o644);
    }
    await chown(directory, 0, 0);
    await chmod(directory, 0o755);
    return directory;
  } finally {
    await slots.release(slot);
  }
}
