import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment, MicrovmLogger } from './environment.ts';
import { MicrovmError } from './facade.ts';
import { readImages } from './image/image-store.ts';
import { openCgroups } from './jail/cgroups/open-cgroups.ts';
import { Jail } from './jail/jail.ts';
import { claimInstance, NetworkSlots, releaseInstance } from './network/index.ts';
import { ensureSshKey } from './vm/ssh-key.ts';
import { openQemu } from './vmm/qemu/open-qemu.ts';

export interface EnvironmentOptions {
  readonly dataDir: string;
  readonly imageDir: string;
  readonly logger: MicrovmLogger;
  /** Network slots to hold ready. */
  readonly slotStock?: number;
  /** Slots of VMs that live. */
  readonly keepSlots?: readonly number[];
  /** TCP ports of the guests' gateway that lead to this machine. */
  readonly gatewayPorts?: readonly number[];
}

/** An environment that is open until it is closed. */
export interface OpenEnvironment extends Environment {
  /** Where the guests' gateway ports lead to. */
  readonly serviceAddress: string;
  /** Takes the machine's side down, but for the slots of VMs that go on. */
  close(options: { readonly keep: readonly number[] }): Promise<void>;
}

/** Sets up the machine's side of the VMs of one data directory. Needs root and one built image. */
export async function openEnvironment(
  { dataDir, imageDir, logger, slotStock, keepSlots = [], gatewayPorts = [] }: EnvironmentOptions,
  signal: AbortSignal,
): Promise<OpenEnvironment> {
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
      ...(slotStock === undefined ? {} : { stock: slotStock }),
      onBackgroundError: (error) => logger.warn({ err: error }, 'cannot prepare a network slot'),
    });
    return { vmm, sshKey, slots };
  };
  const { vmm, sshKey, slots } = await open().catch(async (error: unknown) => {
    // With VMs alive, the next start needs what is there.
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
        // The jail goes first: giving the instance back removes its run directory.
        if (keep.length === 0) await jail.close();
      } finally {
        await slots.close({ keep });
      }
    },
  };
}
