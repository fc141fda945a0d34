import { readdir } from 'node:fs/promises';
import { isAlive } from '@svc/service-kit/process';
import type { Environment } from '../environment.ts';
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
  for (const record of records) {
    const microvm = await adoptOne(environment, record, signal);
    if (microvm !== undefined) adopted.push(microvm);
  }
  const kept = new Set(adopted.map(({ id }) => id));
  for (const id of await directoryNames(environment.vmsDir)) {
    if (kept.has(id)) continue;
    await killStray(id);
    await environment.jail.remove(id);
  }
  return adopted;
}

async function adoptOne(
  { slots, jail, vmm, sshKey, logger }: Environment,
  record: VmRecord,
  signal: AbortSignal,
): Promise<LiveMicrovm | undefined> {
  try {
    const slot = await slots.adopt(record.slot);
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
