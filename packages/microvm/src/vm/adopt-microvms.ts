import { readdir } from 'node:fs/promises';
import { isAlive } from '@svc/service-kit/process';
import type { Environment } from '../environment.ts';
import type { NetworkSlot } from '../network/index.ts';
import { LiveMicrovm } from './live-microvm.ts';
import { resourceLimits } from './resource-limits.ts';
import { killStray } from './stray-processes.ts';
import { readVmRecord, type VmRecord } from './vm-record.ts';

/** The records of the VMs that an earlier process of this service left alive. */
export async function livingRecords(vmsDir: string): Promise<VmRecord[]> {
  const living: VmRecord[] = [];
  for (const id of await directoryNames(vmsDir)) {
    const record = await readVmRecord(`${vmsDir}/${id}`);
    if (record !== undefined && (await isAlive(record.process))) living.push(record);
  }
  return living;
}

/** Takes over the living VMs, and takes away whatever else earlier processes left. */
export async function adoptMicrovms(
  environment: Environment,
  records: readonly VmRecord[],
  signal: AbortSignal,
): Promise<LiveMicrovm[]> {
  const adopted: LiveMicrovm[] = [];
  const refused: NetworkSlot[] = [];
  try {
    for (const record of records) {
      const slot = await adoptSlot(environment, record);
      if (slot === undefined) continue;
      const microvm = await adoptOne(environment, record, slot, signal);
      if (microvm === undefined) refused.push(slot);
      else adopted.push(microvm);
    }
  } catch (error) {
    for (const microvm of adopted) microvm.detach();
    throw error;
  }
  await removeAllBut(environment, new Set(adopted.map(({ id }) => id)));
  // Only now have their VMs ended.
  for (const slot of refused) await environment.slots.release(slot);
  return adopted;
}

/** Ends every VM of this service but these, and takes away what it left; its network slot apart. */
export async function removeAllBut(
  { vmsDir, jail }: Environment,
  kept: ReadonlySet<string>,
): Promise<void> {
  for (const id of await directoryNames(vmsDir)) {
    if (kept.has(id)) continue;
    await killStray(id);
    await jail.remove(id);
  }
}

async function adoptSlot(
  { slots, logger }: Environment,
  record: VmRecord,
): Promise<NetworkSlot | undefined> {
  try {
    return await slots.adopt(record.slot);
  } catch (error) {
    logger.warn({ err: error, vm: record.id }, 'the network of a VM of an earlier run is gone');
    return undefined;
  }
}

async function adoptOne(
  { slots, jail, vmm, sshKey, logger }: Environment,
  record: VmRecord,
  slot: NetworkSlot,
  signal: AbortSignal,
): Promise<LiveMicrovm | undefined> {
  try {
    const confinement = jail.confine(record.id, slot, resourceLimits(record));
    const process = await vmm.adopt(confinement, record.process, signal);
    if (process === undefined) return undefined;
    const paused = await process.isPaused(signal);
    const release = async () => {
      await jail.remove(record.id);
      await slots.release(slot);
    };
    return new LiveMicrovm({
      directory: jail.directoryOf(record.id),
      record,
      slot,
      process,
      privateKey: sshKey.privateKey,
      paused,
      release,
    });
  } catch (error) {
    signal.throwIfAborted();
    logger.warn({ err: error, vm: record.id }, 'a VM of an earlier run cannot be taken over');
    return undefined;
  }
}

async function directoryNames(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}
