import type { ResourceLimits } from '../jail/cgroups/cgroups.ts';
import type { VmShape } from '../vm-shape.ts';
import { translationCacheMib } from './translation-cache.ts';

/** Share of one core that each vCPU may use. */
export const CPU_FRACTION = 1;

const MIB = 1024 * 1024;
/** The monitor's own memory besides translated code: device models, buffers. */
const OVERHEAD_MIB = 192;
/** The monitor's threads besides the vCPUs: main loop, disk workers. */
const OTHER_THREADS = 80;
/** Share of a core for disk and network, in addition to the vCPUs. */
const DEVICE_CORES = 0.25;

/** The limits for the process of a VM of this shape. */
export function resourceLimits(shape: VmShape): ResourceLimits {
  const { vcpu, memoryMib } = shape;
  return {
    cores: vcpu * CPU_FRACTION + DEVICE_CORES,
    memoryBytes: (memoryMib + OVERHEAD_MIB + translationCacheMib(shape)) * MIB,
    tasks: vcpu + OTHER_THREADS,
  };
}
