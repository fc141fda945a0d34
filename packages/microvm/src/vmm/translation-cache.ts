import type { VmShape } from '../vm-shape.ts';

const SMALL_MIB = 256;
const LARGE_MIB = 512;
/** Guests from this size on run programs that need more than the small cache, such as browsers. */
const LARGE_GUEST_MIB = 1024;

/**
 * The most that a VM's cache of translated code may take on a machine without KVM, in MiB. QEMU empties a full cache
 * completely, and programs that together need more are translated again at each start, which then takes three to five times as
 * long: Node, Python and Claude Code fill 128 MiB, Chromium and Node 256 MiB. The cache is private memory of the VM, and takes
 * only what it needs.
 */
export function translationCacheMib({ memoryMib }: Pick<VmShape, 'memoryMib'>): number {
  return memoryMib < LARGE_GUEST_MIB ? SMALL_MIB : LARGE_MIB;
}
