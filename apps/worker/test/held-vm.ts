import type { ReservedVm } from '../src/sandbox/lifecycle.ts';
import { MemoryMicrovm } from './memory-microvm.ts';

/** A VM with its reserved capacity, as the pool hands it over. Counts how often the capacity is released. */
export class HeldVm implements ReservedVm {
  readonly vm = new MemoryMicrovm(
    { id: 'vm', template: 'standard', image: 'i', vcpu: 1, memoryMib: 512, diskMib: 1024 },
    () => undefined,
  );
  readonly reservation = {
    release: () => {
      this.released += 1;
    },
  };
  released = 0;
}
