import { availableParallelism, totalmem } from 'node:os';
import type { MicrovmHost } from '@svc/microvm';
import type { CapacityLimits } from './capacity.ts';

const MIB = 1024 * 1024;

/**
 * Idle sandboxes use little of their nominal size, so the nominal totals exceed the machine's resources. The free
 * resources of the real machine are checked before each new VM in any case.
 */
const OVERCOMMIT = { vcpu: 64, memory: 4, disk: 8 } as const;
const MIN_FREE_MEMORY_MIB = 512;
const MIN_FREE_DISK_MIB = 1024;
const MEMORY_PER_PENDING_MIB = 128;

/** The capacity of this machine, which is the same whether or not it runs VMs of an earlier process. */
export async function machineLimits(
  machine: Pick<MicrovmHost, 'diskAvailableMib' | 'diskUsedMib'>,
): Promise<CapacityLimits> {
  const diskMib = (await machine.diskAvailableMib()) + (await machine.diskUsedMib());
  return {
    vcpu: availableParallelism() * OVERCOMMIT.vcpu,
    memoryMib: Math.floor((totalmem() / MIB) * OVERCOMMIT.memory),
    diskMib: Math.floor(diskMib * OVERCOMMIT.disk),
    minFreeMemoryMib: MIN_FREE_MEMORY_MIB,
    minFreeDiskMib: MIN_FREE_DISK_MIB,
    memoryPerPendingMib: MEMORY_PER_PENDING_MIB,
  };
}

/** The number of restores at a time. They are bound by the CPU: more than the cores would only slow each of them. */
export function restoreConcurrency(): number {
  return availableParallelism() + 1;
}
