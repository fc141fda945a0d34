import { cpus } from 'node:os';

/** Whether the processor is emulated by QEMU instruction by instruction, as in a sandbox without KVM. */
export function isEmulated(): boolean {
  return cpus()[0]?.model.includes('QEMU TCG') === true;
}
