import { availableParallelism, totalmem } from 'node:os';
import type { CapacityLimits, MachineRoom } from './capacity.ts';

const MIB = 1024 * 1024;

/**
 * Idle sandboxes use little of what they are promised, so more is promised than there is.
 * What the machine really has left is checked before each new VM, whatever the promises say.
 */
const OVERCOMMIT = { vcpu: 64, memory: 4, disk: 8 } as const;
const MIN_FREE_MEMORY_MIB = 512;
const MIN_FREE_DISK_MIB = 1024;
const MEMORY_PER_PENDING_MIB = 128;

/** What this machine may hand out. */
export async function machineLimits(room: MachineRoom): Promise<CapacityLimits> {
  return {
    vcpu: availableParallelism() * OVERCOMMIT.vcpu,
    memoryMib: Math.floor((totalmem() / MIB) * OVERCOMMIT.memory),
    diskMib: Math.floor((await room.diskAvailableMib()) * OVERCOMMIT.disk),
    minFreeMemoryMib: MIN_FREE_MEMORY_MIB,
    minFreeDiskMib: MIN_FREE_DISK_MIB,
    memoryPerPendingMib: MEMORY_PER_PENDING_MIB,
  };
}

/** Restores at once: all of it is work for the CPU, so more than the cores only makes every one late. */
export function restoreConcurrency(): number {
  return availableParallelism() + 1;
}
