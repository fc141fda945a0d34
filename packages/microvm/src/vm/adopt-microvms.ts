import { readdir } from 'node:fs/promises';
import { runEveryStep } from '@svc/service-kit/concurrency';
import { isAlive } from '@svc/service-kit/process';
import type { NetworkSlot } from '../network/index.ts';
import type { HostResources } from '../resources/host-resources.ts';
import { resourceLimits } from '../vmm/resource-limits.ts';
import { assigner } from './assign-owner.ts';
import { LiveMicrovm } from './live-microvm.ts';
import { releaseVm } from './release-vm.ts';
import { killStray } from './stray-processes.ts';
import { readVmRecord, type VmRecord } from './vm-record.ts';

/** The records of the VMs that an earlier process of this service left running. */
export async function recordsOfLiveVms(vmsDir: string): Promise<VmRecord[]> {
  const live: VmRecord[] = [];
  for (const id of await directoryNames(vmsDir)) {
    const record = await readVmRecord(`${vmsDir}/${id}`);
    if (record !== undefined && (await isAlive(record.process))) live.push(record);
  }
  return live;
}

/** Takes over the VMs that are still running and removes everything else that earlier processes left behind. */
export async function adoptMicrovms(
  resources: HostResources,
  records: readonly VmRecord[],
  signal: AbortSignal,
): Promise<LiveMicrovm[]> {
  const adopted: LiveMicrovm[] = [];
  const refused: NetworkSlot[] = [];
  try {
    for (const record of records) {
      const slot = await adoptSlot(resources, record);
      if (slot === undefined) continue;
      const microvm = await adoptOne(resources, record, slot, signal);
      if (microvm === undefined) refused.push(slot);
      else adopted.push(microvm);
    }
    await removeAllBut(resources, new Set(adopted.map(({ id }) => id)));
    // Their VMs have ended only now.
    await runEveryStep(
      refused.map((slot) => ({
        name: `release network slot ${slot.index}`,
        run: () => resources.slots.release(slot),
      })),
    );
    return adopted;
  } catch (error) {
    for (const microvm of adopted) microvm.detach();
    throw error;
  }
}

/**
 * Ends every VM of this service except those in `kept` and removes its remains, except its network slot.
 * @throws CleanupError with the failures of all VMs
 */
export async function removeAllBut(
  { vmsDir, jail }: HostResources,
  kept: ReadonlySet<string>,
): Promise<void> {
  const ids = (await directoryNames(vmsDir)).filter((id) => !kept.has(id));
  await runEveryStep(
    ids.map((id) => ({
      name: `remove ${id}`,
      run: async () => {
        await killStray(id);
        await jail.remove(id);
      },
    })),
  );
}

async function adoptSlot(
  { slots, logger }: HostResources,
  record: VmRecord,
): Promise<NetworkSlot | undefined> {
  try {
    return await slots.adopt(record.slot);
  } catch (error) {
    logger.warn(
      { err: error, vm: record.id },
      'the network slot of a VM from an earlier run is gone',
    );
    return undefined;
  }
}

async function adoptOne(
  resources: HostResources,
  record: VmRecord,
  slot: NetworkSlot,
  signal: AbortSignal,
): Promise<LiveMicrovm | undefined> {
  const { jail, vmm, sshKey, logger } = resources;
  try {
    const confinement = jail.confine(record.id, slot, resourceLimits(record));
    const process = await vmm.adopt(confinement, record.process, signal);
    if (process === undefined) return undefined;
    const paused = await process.isPaused(signal);
    const assign = assigner(resources, record.id, process);
    // The earlier process may have ended before it did so.
    if (record.owner !== undefined) assign(record.owner);
    return new LiveMicrovm({
      directory: jail.directoryOf(record.id),
      record,
      slot,
      process,
      privateKey: sshKey.privateKey,
      paused,
      assign,
      release: () => releaseVm(resources, record.id, slot),
    });
  } catch (error) {
    signal.throwIfAborted();
    logger.warn({ err: error, vm: record.id }, 'a VM from an earlier run cannot be adopted');
    return undefined;
  }
}

async function directoryNames(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}
