import { randomBytes } from 'node:crypto';
import { isServiceError, type SandboxSize } from '@svc/contract';
import type { ImageInfo, MicrovmHost } from '@svc/microvm';
import { Slots } from '@svc/service-kit/concurrency';
import type { Capacity } from './capacity/capacity.ts';
import { discard, type Pool, type PooledVm } from './pool/pool.ts';
import { isImageSize, sizeOf } from './sizes.ts';

const CUSTOM_SIZES_AT_ONCE = 2;

/** The VM to make. */
export interface VmWish {
  readonly image: ImageInfo;
  readonly size: SandboxSize;
  /** Its name from the start, where the owner is known. */
  readonly hostname?: string;
}

/** Makes VMs that nobody owns yet: room first, then the restore. */
export class VmMaker {
  readonly #host: MicrovmHost;
  readonly #capacity: Capacity;
  readonly #pool: Pool;
  readonly #slots: Slots;
  /** Of their own: a size asked for the first time takes much longer, and must not hold up the usual ones. */
  readonly #customSlots = new Slots(CUSTOM_SIZES_AT_ONCE);

  /** `concurrency`: restores at once; more than the machine's cores only make all of them late. */
  constructor(host: MicrovmHost, capacity: Capacity, pool: Pool, concurrency: number) {
    this.#host = host;
    this.#capacity = capacity;
    this.#pool = pool;
    this.#slots = new Slots(concurrency);
  }

  /**
   * Restores a VM.
   * @throws ServiceError `no_capacity`; MicrovmError. Nothing is left behind on failure.
   */
  async make(wish: VmWish, signal: AbortSignal): Promise<PooledVm> {
    const { image, size, ...named } = wish;
    const { vcpu, memoryMib, diskMib } = sizeOf(size, image);
    const reservation = await this.#capacity.reserve({ vcpu, memoryMib, diskMib });
    try {
      const isUsual = isImageSize(size, image);
      const request = {
        id: `m_${randomBytes(8).toString('hex')}`,
        template: image.template,
        ...named,
        ...(isUsual ? {} : { size: { ...size, vcpu, memory_mib: memoryMib, disk_mib: diskMib } }),
      };
      const slots = isUsual ? this.#slots : this.#customSlots;
      const vm = await slots.run(() => this.#host.restore(request, signal), signal);
      reservation.settle();
      return { vm, reservation };
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  /** Holds room for a caller who waits: idle VMs are given back to make it. @throws ServiceError `no_capacity` */
  async makeAtAllCost(wish: VmWish, signal: AbortSignal): Promise<PooledVm> {
    for (;;) {
      try {
        return await this.make(wish, signal);
      } catch (error) {
        const given = isServiceError(error, 'no_capacity') ? this.#pool.giveBack() : undefined;
        if (given === undefined) throw error;
        await discard(given);
      }
    }
  }
}
