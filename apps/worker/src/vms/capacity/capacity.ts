import { ServiceError } from '@svc/contract';
import type { Size } from '../sizes.ts';

/** What this worker may hand out, and how much of the real machine must stay free. All sizes in MiB. */
export interface CapacityLimits {
  /** Nominal totals: the machine's, times the overcommit. */
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  /** No VM is added when the machine really has less than this. */
  readonly minFreeMemoryMib: number;
  readonly minFreeDiskMib: number;
  /** Real memory counted for each VM that is being made and does not show in the machine's figures yet. */
  readonly memoryPerPendingMib: number;
}

/** What the machine really has left. */
export interface MachineRoom {
  memoryAvailableMib(): number;
  diskAvailableMib(): Promise<number>;
}

/** Room held for one VM. Passed on with the VM, given back exactly once. */
export interface Reservation {
  readonly size: Size;
  /** Says that the VM has come up, so that the machine's own figures include it. */
  settle(): void;
  release(): void;
}

/** Accounts for vCPUs, memory and disk of every VM of this worker. */
export class Capacity {
  readonly limits: CapacityLimits;
  readonly #room: MachineRoom;
  #vcpu = 0;
  #memoryMib = 0;
  #diskMib = 0;
  #pending = 0;

  constructor(limits: CapacityLimits, room: MachineRoom) {
    this.limits = limits;
    this.#room = room;
  }

  /**
   * Holds room for a VM.
   * @throws ServiceError `no_capacity` when the accounts or the machine itself have too little
   */
  async reserve(size: Size): Promise<Reservation> {
    // Counted before the machine is asked, so that two requests cannot both take the last room.
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
      await this.assertMachineHasRoom();
    } catch (error) {
      release();
      throw error;
    }
    return { size, settle, release };
  }

  /** Accounts for a VM that already runs, whatever the limits say. */
  adopt(size: Size): Reservation {
    return this.#hold(size);
  }

  /** @throws ServiceError `no_capacity` when the machine is really short of memory or disk. */
  async assertMachineHasRoom(): Promise<void> {
    if (this.memoryIsShort) {
      throw new ServiceError('no_capacity', 'This worker is short of memory; try again later.');
    }
    if ((await this.#room.diskAvailableMib()) < this.limits.minFreeDiskMib) {
      throw new ServiceError('no_capacity', 'This worker is short of disk; try again later.');
    }
  }

  /** Whether one more VM could bring the machine below its memory reserve. */
  get memoryIsShort(): boolean {
    const expected = this.#pending * this.limits.memoryPerPendingMib;
    return this.#room.memoryAvailableMib() - expected < this.limits.minFreeMemoryMib;
  }

  /** Whether the machine's real disk is below the reserve. */
  async diskIsShort(): Promise<boolean> {
    return (await this.#room.diskAvailableMib()) < this.limits.minFreeDiskMib;
  }

  /** Nominal room that nobody holds. */
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
