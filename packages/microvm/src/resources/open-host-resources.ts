import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runEveryStep, sleep, UndoList } from '@svc/service-kit/concurrency';
import { readImages } from '../image/image-store.ts';
import type { Cgroups } from '../jail/cgroups/cgroups.ts';
import { openCgroups } from '../jail/cgroups/open-cgroups.ts';
import { Jail } from '../jail/jail.ts';
import { MicrovmError } from '../microvm-error.ts';
import { claimInstance, NetworkSlots, releaseInstance } from '../network/index.ts';
import { openQemu } from '../vmm/qemu/open-qemu.ts';
import type { HostResources, MicrovmLogger } from './host-resources.ts';
import { ensureSshKey } from './ssh-key.ts';

const KVM_PROBE_MS = 8_000;
/** How often the shares of the processor follow what VMs want. */
const BALANCE_MS = 2_000;

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
  /** Most milliseconds that a guest may take to show that KVM works. Default: 8000. */
  readonly kvmProbeMs?: number | undefined;
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
    kvmProbeMs = KVM_PROBE_MS,
  }: HostResourcesOptions,
  signal: AbortSignal,
): Promise<OpenHostResources> {
  const [image] = await readImages(imageDir);
  if (image === undefined) {
    throw new MicrovmError('unknown_template', 'no image is built; run `svc image build`');
  }
  const vmsDir = join(dataDir, 'vms');
  await mkdir(vmsDir, { recursive: true, mode: 0o711 });
  const undo = new UndoList();
  const instance = await claimInstance(dataDir);
  undo.add('release the instance', () => releaseInstance(instance));
  const open = async () => {
    const cgroups = await openCgroups(instance.name, (message) => logger.warn({}, message));
    undo.add('remove the control groups', () => cgroups.close());
    await cgroups.favour(process.pid);
    const balancing = balanceForever(cgroups, logger);
    undo.add('stop to balance the control groups', async () => balancing.abort());
    const jail = await Jail.open({ runDir: instance.runDir, vmsDir, imageDir, cgroups });
    undo.add('close the jail', () => jail.close());
    const [vmm, sshKey] = await Promise.all([
      openQemu(
        {
          kernel: image.kernelPath,
          initrd: image.initrdPath,
          verdictFile: join(imageDir, 'kvm.json'),
          probeMs: kvmProbeMs,
          outsidePath: (inside) => inside.replace(/^\/images/, imageDir),
          onFault: (error) => logger.error({ err: error }, 'cannot end the process of a VM'),
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
    return { jail, vmm, sshKey, slots, balancing };
  };
  const { jail, vmm, sshKey, slots, balancing } = await open().catch(async (error: unknown) => {
    // While VMs are running, the next start needs the jail and the instance.
    if (keepSlots.length === 0) {
      await undo.run().catch((failure: unknown) => {
        logger.error({ err: failure }, 'cannot undo everything of a failed start');
      });
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
      balancing.abort();
      await runEveryStep([
        // The jail closes first: releasing the instance removes its run directory.
        ...(keep.length === 0 ? [{ name: 'close the jail', run: () => jail.close() }] : []),
        { name: 'close the network', run: () => slots.close({ keep }) },
      ]);
    },
  };
}

/** Balances until it is aborted. A failure is logged: VMs work without. */
function balanceForever(
  cgroups: Pick<Cgroups, 'balance'>,
  logger: Pick<MicrovmLogger, 'warn'>,
): AbortController {
  const stop = new AbortController();
  const run = async () => {
    for (;;) {
      await sleep(BALANCE_MS, stop.signal, { ref: false });
      if (stop.signal.aborted) return;
      await cgroups.balance().catch((error: unknown) => {
        logger.warn({ err: error }, 'cannot balance the shares of the processor');
      });
    }
  };
  void run();
  return stop;
}
