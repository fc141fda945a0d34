import { SLOT_COUNT } from '../addresses.ts';
import { NetworkError } from '../network-error.ts';

/**
 * The slot indexes in use. Free indexes are allocated in turn, so that an address is reused as late as possible and
 * does not receive packets meant for its previous user.
 */
export class SlotIndexes {
  readonly #used = new Set<number>();
  #last: number;

  constructor(last = 0) {
    this.#last = last;
  }

  /** @throws NetworkError `slots_exhausted` */
  allocate(): number {
    for (let tries = 1; tries < SLOT_COUNT; tries += 1) {
      this.#last = (this.#last % (SLOT_COUNT - 1)) + 1;
      if (this.#used.has(this.#last)) continue;
      this.#used.add(this.#last);
      return this.#last;
    }
    throw new NetworkError('slots_exhausted', `all ${SLOT_COUNT - 1} network slots are in use`);
  }

  /** Marks an index as in use. */
  reserve(index: number): void {
    this.#used.add(index);
  }

  free(index: number): void {
    this.#used.delete(index);
  }

  has(index: number): boolean {
    return this.#used.has(index);
  }
}
