import type { VmShape } from '../vm-shape.ts';

const SMALLEST_MIB = 64;
const LARGEST_MIB = 512;
/** Guests from this size on run programs that need more than the smallest cache, such as browsers. */
const LARGE_GUEST_MIB = 1024;
const SHARE = 1 / 4;

/**
 * The most that a VM's cache of translated code may take on a machine without KVM, in MiB. QEMU empties a full cache
 * completely: with half of the smallest size, VMs lose the code that they translated while rehearsing in the pool, and a
 * browser translates itself again for each page. The cache is private memory of the VM, and takes what it needs.
 */
export function translationCacheMib({ memoryMib }: Pick<VmShape, 'memoryMib'>): number {
  if (memoryMib < LARGE_GUEST_MIB) return SMALLEST_MIB;
  return Math.min(LARGEST_MIB, memoryMib * SHARE);
}
