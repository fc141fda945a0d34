import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readImages } from '../image/image-store.ts';
import { openCgroups } from '../jail/cgroups/open-cgroups.ts';
import { Jail } from '../jail/jail.ts';
import { MicrovmError } from '../microvm-error.ts';
import { claimInstance, NetworkSlots, releaseInstance } from '../network/index.ts';
import { openQemu } from '../vmm/qemu/open-qemu.ts';
import type { HostResources, MicrovmLogger } from './host-resources.ts';
import { ensureSshKey } from './ssh-key.ts';

export interface HostResourcesOptions {
  readonly dataDir: string;
  readonly imageDir: string;
  readonly logger: MicrovmLogger;
  /** Number of network slots to keep ready. */
  readonly slotPoolSize?: number;
  /** Network slots of VMs that are still running. */
  readonly keepSlots?: readonly number[];
  /** TCP ports of the guests' gateway that forward to this machine. */
  readonly gatewayPorts?: readonly number[];
}

/** The resources of a machine until `close` releases them. */
export interface OpenHostResources extends HostResources {
  /** The address to which the guests' gateway ports forward. */
  readonly serviceAddress: string;
  /** Releases the resources, except the slots of VMs that stay running. */
  close(options: { readonly keep: readonly number[] }): Promise<void>;
}

/** Acquires the resources for the VMs of one data directory. Needs root and at least one built image. */
export async function openHostResources(
  {
    dataDir,
    imageDir,
    logger,
    slotPoolSize,
    keepSlots = [],
    gatewayPorts = [],
  }: HostResourcesOptions,
  signal: AbortSignal,
): Promise<OpenHostResources> {
  const [image] = await readImages(imageDir);
  if (image === undefined) {
    throw new MicrovmError('unknown_template', 'no image is built; run `svc image build`');
  }
  const vmsDir = join(dataDir, 'vms');
  await mkdir(vmsDir, { recursive: true, mode: 0o711 });
  const instance = await claimInstance(dataDir);
  const cgroups = await openCgroups(instance.name, (message) => logger.warn({}, message));
  const jail = await Jail.open({ runDir: instance.runDir, vmsDir, imageDir, cgroups });
  const open = async () => {
    const [vmm, sshKey] = await Promise.all([
      openQemu(
        {
          kernel: image.kernelPath,
          initrd: image.initrdPath,
          verdictFile: join(imageDir, 'kvm.json'),
          outsidePath: (inside) => inside.replace(/^\/images/, imageDir),
        },
        signal,
      ),
      ensureSshKey(join(dataDir, 'ssh-key.json')),
    ]);
    const slots = await NetworkSlots.open({
      instance,
      keep: keepSlots,
      gatewayPorts,
      ...(slotPoolSize === undefined ? {} : { poolSize: slotPoolSize }),
      onBackgroundError: (error) => logger.warn({ err: error }, 'cannot prepare a network slot'),
    });
    return { vmm, sshKey, slots };
  };
  const { vmm, sshKey, slots } = await open().catch(async (error: unknown) => {
    // While VMs are running, the next start needs the jail and the instance.
    if (keepSlots.length === 0) {
      await jail.close();
      await releaseInstance(instance);
    }
    throw error;
  });
  for (const change of slots.hostChanges) logger.info({}, change);
  return {
    vmsDir,
    imageDir,
    serviceAddress: instance.serviceAddress,
    slots,
    jail,
    vmm,
    sshKey,
    logger,
    close: async ({ keep }) => {
      try {
        // The jail closes first: releasing the instance removes its run directory.
        if (keep.length === 0) await jail.close();
      } finally {
        await slots.close({ keep });
      }
    },
  };
}
