import type { ResourceLimits } from '../jail/cgroups/cgroups.ts';
import type { VmShape } from '../vmm/vmm.ts';
import { CPU_FRACTION } from './live-microvm.ts';

const MIB = 1024 * 1024;
/** QEMU's own memory: translated code, device models, buffers. */
const OVERHEAD_MIB = 256;
/** QEMU's threads beside the vCPUs: main loop, disk workers. */
const OTHER_THREADS = 80;
/** A core's share beside the vCPUs, for disk and network. */
const DEVICE_CORES = 0.25;

export function resourceLimits({ vcpu, memoryMib }: VmShape): ResourceLimits {
  return {
    cores: vcpu * CPU_FRACTION + DEVICE_CORES,
    memoryBytes: (memoryMib + OVERHEAD_MIB) * MIB,
    tasks: vcpu + OTHER_THREADS,
  };
}
