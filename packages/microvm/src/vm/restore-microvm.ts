import { GUEST_LINK } from '@svc/contract';
import { UndoList } from '@svc/service-kit/concurrency';
import { GuestChannel } from '../guest/channel/guest-channel.ts';
import { createIdentity } from '../guest/identity.ts';
import type { Image } from '../image/image.ts';
import { snapshotDirectory } from '../image/snapshot-directory.ts';
import type { RestoreRequest } from '../microvm-host.ts';
import type { HostResources } from '../resources/host-resources.ts';
import type { VmShape } from '../vm-shape.ts';
import { resourceLimits } from '../vmm/resource-limits.ts';
import { assigner } from './assign-owner.ts';
import { LiveMicrovm } from './live-microvm.ts';
import { releaseVm } from './release-vm.ts';
import { writeVmRecord } from './vm-record.ts';

const MIB = 1024 * 1024;

/**
 * Creates a VM from a snapshot: network slot, disk, process, identity and connections, in this order. A failure or an
 * abort removes everything again.
 */
export async function restoreMicrovm(
  resources: HostResources,
  image: Image,
  request: RestoreRequest,
  signal: AbortSignal,
): Promise<LiveMicrovm> {
  const { slots, jail, vmm, sshKey, logger } = resources;
  const shape = shapeFor(request, image);
  const diskMib = Math.max(request.size?.disk_mib ?? image.diskMib, image.diskMib);
  const slot = await slots.take(signal);
  const undo = new UndoList();
  undo.add('release the network slot', () => slots.release(slot));
  undo.add('remove the directory', () => jail.remove(request.id));
  try {
    await jail.prepare(request.id, slot);
    const confinement = jail.confine(request.id, slot, resourceLimits(shape));
    const snapshot = jail.imagePath(snapshotDirectory(image, vmm.snapshotKey, shape));
    const rootfs = image.disk.map((file) => jail.imagePath(file));
    const process = await vmm.restore({ ...shape, confinement, rootfs, snapshot }, signal);
    undo.add('end the process', () => process.kill());
    // Limits need not be set before the guest runs: until it has its identity, only its idle daemon is running.
    const limited = confinement.limit(process.identity.pid, request.owner);
    undo.add('wait for the limits', () => limited.catch(() => undefined));
    const identity = createIdentity(
      request.hostname ?? request.id.replaceAll('_', '-').slice(0, 63),
    );
    const channel = new GuestChannel({ host: slot.address, port: GUEST_LINK.guestPorts.channel });
    await Promise.all([limited, channel.identify(identity, sshKey.publicKey, signal)]);
    if (diskMib > image.diskMib) {
      await process.growDisk(diskMib * MIB, signal);
      await channel.growRoot(diskMib * MIB, signal);
    }
    const record = {
      id: request.id,
      slot: slot.index,
      process: process.identity,
      template: image.template,
      image: image.id,
      rootfs: image.rootfs,
      ...shape,
      diskMib,
      token: identity.token,
      hostKey: identity.hostKey.publicKey.toString('base64'),
      hostname: identity.hostname,
      env: {},
      labels: {},
      ...(request.owner === undefined ? {} : { owner: request.owner }),
    };
    const directory = jail.directoryOf(request.id);
    await writeVmRecord(directory, record);
    const microvm = new LiveMicrovm({
      directory,
      record,
      slot,
      process,
      privateKey: sshKey.privateKey,
      paused: false,
      assign: assigner(resources, request.id, process),
      release: () => releaseVm(resources, request.id, slot),
    });
    undo.add('close the connections', () => microvm.detach());
    await microvm.connect(signal);
    return microvm;
  } catch (error) {
    await undo.run().catch((failure: unknown) => {
      logger.error({ err: failure, vm: request.id }, 'cannot undo everything of a failed restore');
    });
    throw error;
  }
}

/** The shape of the snapshot that a request needs. */
export function shapeFor({ size = {} }: RestoreRequest, image: VmShape): VmShape {
  return {
    vcpu: size.vcpu ?? image.vcpu,
    memoryMib: size.memory_mib ?? image.memoryMib,
  };
}
