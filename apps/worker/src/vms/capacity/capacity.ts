import { ServiceError } from '@svc/contract';
import type { Size } from '../sizes.ts';

/** The capacity that this worker may hand out, and the part of the real machine that must stay free. Sizes in MiB. */
export interface CapacityLimits {
  /** Nominal totals: the machine's resources times the overcommit. */
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  /** No VM is added while the machine has less free memory than this. */
  readonly minFreeMemoryMib: number;
  readonly minFreeDiskMib: number;
  /** Memory assumed for each VM that is being made and is not part of the machine's figures yet. */
  readonly memoryPerPendingMib: number;
}

/** The free resources of the real machine. */
export interface MachineResources {
  memoryAvailableMib(): number;
  diskAvailableMib(): Promise<number>;
}

/** Capacity reserved for one VM. Belongs to the owner of the VM, which releases it exactly once. */
export interface Reservation {
  readonly size: Size;
  /** Marks the VM as running, so that the machine's own figures include it. */
  settle(): void;
  release(): void;
}

/** Accounts for the vCPUs, memory and disk of every VM of this worker. */
export class Capacity {
  readonly limits: CapacityLimits;
  readonly #machine: MachineResources;
  #vcpu = 0;
  #memoryMib = 0;
  #diskMib = 0;
  #pending = 0;

  constructor(limits: CapacityLimits, machine: MachineResources) {
    this.limits = limits;
    this.#machine = machine;
  }

  /**
   * Reserves capacity for a VM.
   * @throws ServiceError `no_capacity` when the nominal capacity or the real machine has too little left
   */
  async reserve(size: Size): Promise<Reservation> {
    // Reserved before the machine is checked, so that two requests cannot both get the last capacity.
    if (!this.#fits(size)) throw new ServiceError('no_capacity');
    const reservation = this.#hold(size);
    this.#pending += 1;
    const settle = once(() => {
      this.#pending -= 1;
    });
    const release = () => {
      settle();
      reservation.release();
    };
    try {
      await this.#assertMachineHasResources();
    } catch (error) {
      release();
      throw error;
    }
    return { size, settle, release };
  }

  /** Accounts for a VM that already runs, regardless of the limits. */
  adopt(size: Size): Reservation {
    return this.#hold(size);
  }

  /** @throws ServiceError `no_capacity` when the machine itself is short of memory or disk. */
  async #assertMachineHasResources(): Promise<void> {
    if (this.memoryIsShort) {
      throw new ServiceError('no_capacity', 'This worker is short of memory; try again later.');
    }
    if (await this.diskIsShort()) {
      throw new ServiceError('no_capacity', 'This worker is short of disk; try again later.');
    }
  }

  /** Whether one more VM could bring the machine below its memory reserve. */
  get memoryIsShort(): boolean {
    const expected = this.#pending * this.limits.memoryPerPendingMib;
    return this.#machine.memoryAvailableMib() - expected < this.limits.minFreeMemoryMib;
  }

  /** Whether the machine has less free disk than its reserve. */
  async diskIsShort(): Promise<boolean> {
    return (await this.#machine.diskAvailableMib()) < this.limits.minFreeDiskMib;
  }

  /** Nominal capacity that is not reserved. */
  get free(): Size {
    return {
      vcpu: Math.max(0, this.limits.vcpu - this.#vcpu),
      memoryMib: Math.max(0, this.limits.memoryMib - this.#memoryMib),
      diskMib: Math.max(0, this.limits.diskMib - this.#diskMib),
    };
  }

  #fits(size: Size): boolean {
    const { vcpu, memoryMib, diskMib } = this.free;
    return size.vcpu <= vcpu && size.memoryMib <= memoryMib && size.diskMib <= diskMib;
  }

  #hold(size: Size): Reservation {
    this.#vcpu += size.vcpu;
    this.#memoryMib += size.memoryMib;
    this.#diskMib += size.diskMib;
    const release = once(() => {
      this.#vcpu -= size.vcpu;
      this.#memoryMib -= size.memoryMib;
      this.#diskMib -= size.diskMib;
    });
    return { size, settle: () => undefined, release };
  }
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
