import { randomBytes } from 'node:crypto';
import { isServiceError, type SandboxSize } from '@svc/contract';
import type { ImageInfo, MicrovmHost, VmShape } from '@svc/microvm';
import { Slots } from '@svc/service-kit/concurrency';
import type { Capacity } from './capacity/capacity.ts';
import { discard, type Pool, type PooledVm } from './pool/pool.ts';
import { isImageSize, sizeOf } from './sizes.ts';

/** A first snapshot takes seconds, on one core. */
const SNAPSHOTS_AT_ONCE = 2;

/** A VM to make. */
export interface VmRequest {
  readonly image: ImageInfo;
  readonly size: SandboxSize;
  /** Host name from the start, if the owner is known. */
  readonly hostname?: string;
  /** The tenant that waits for it, if any. */
  readonly tenantId?: string;
}

/** Makes VMs: reserves capacity, then restores, for which the tenants take turns. The caller owns the result. */
export class VmMaker {
  readonly #host: MicrovmHost;
  readonly #capacity: Capacity;
  readonly #pool: Pool;
  readonly #slots: Slots;
  /** Separate, because the first restore of a size takes much longer and must not delay the others. */
  readonly #snapshotSlots = new Slots(SNAPSHOTS_AT_ONCE);

  /**
   * `concurrency`: the number of restores at a time that tenants wait for; more than the machine's cores would only slow each
   * of them. A tenant has one less, so that the restore of another one begins at once.
   */
  constructor(host: MicrovmHost, capacity: Capacity, pool: Pool, concurrency: number) {
    this.#host = host;
    this.#capacity = capacity;
    this.#pool = pool;
    this.#slots = Slots.shared(concurrency);
  }

  /**
   * Restores a VM.
   * @throws ServiceError `no_capacity`; MicrovmError. A failure leaves nothing behind.
   */
  async make(wanted: VmRequest, signal: AbortSignal): Promise<PooledVm> {
    const { image, size, tenantId, ...named } = wanted;
    const { vcpu, memoryMib, diskMib } = sizeOf(size, image);
    const reservation = await this.#capacity.reserve({ vcpu, memoryMib, diskMib });
    try {
      const isUsual = isImageSize(size, image);
      const request = {
        id: `m_${randomBytes(8).toString('hex')}`,
        template: image.template,
        ...named,
        ...(tenantId === undefined ? {} : { owner: tenantId }),
        ...(isUsual ? {} : { size: { ...size, vcpu, memory_mib: memoryMib, disk_mib: diskMib } }),
      };
      if (!isUsual)
        await this.#ensureSnapshot(image.template, { vcpu, memoryMib }, tenantId, signal);
      const restore = () => this.#host.restore(request, signal);
      // The pool gets one VM at a time, which no tenant waits for.
      const vm = await (tenantId === undefined
        ? restore()
        : this.#slots.run(restore, signal, tenantId));
      reservation.settle();
      return { vm, reservation };
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  /** The first VM of a shape waits for its snapshot. Tenants take turns, however many shapes one of them asks for. */
  async #ensureSnapshot(
    template: string,
    shape: VmShape,
    tenantId: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (await this.#host.hasShape(template, shape)) return;
    const prepare = () => this.#host.prepareShape(template, shape, {}, signal);
    await this.#snapshotSlots.run(prepare, signal, tenantId);
  }

  /** Restores a VM that a caller waits for; destroys idle VMs as long as capacity is short. @throws as {@link make} */
  async makeWithEviction(wanted: VmRequest, signal: AbortSignal): Promise<PooledVm> {
    for (;;) {
      try {
        return await this.make(wanted, signal);
      } catch (error) {
        const evicted = isServiceError(error, 'no_capacity') ? this.#pool.evict() : undefined;
        if (evicted === undefined) throw error;
        await discard(evicted);
      }
    }
  }
}
