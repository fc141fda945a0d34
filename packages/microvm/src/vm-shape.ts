/** The number of CPUs and the memory size of a VM. A snapshot fits only the shape it was taken in. */
export interface VmShape {
  readonly vcpu: number;
  readonly memoryMib: number;
}
