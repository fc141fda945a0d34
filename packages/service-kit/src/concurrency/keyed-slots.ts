/** The share of the free slots that a key may have. */
const SHARE = 1 / 4;

/**
 * Counts how much each key holds, up to the same limit for all. Nobody waits: who finds no free slot is refused. With a
 * total, a key may hold at most a quarter of what all keys together leave free. So however many keys take as much as they can, one
 * that holds nothing still gets a slot; with 16 of them, a fifth of all slots is free.
 */
export class KeyedSlots {
  readonly #most: number;
  readonly #total: number;
  readonly #taken = new Map<string, number>();
  #allTaken = 0;

  /**
   * @param most of one key
   * @param total of all keys together; default: as many as they take
   */
  constructor(most: number, total = Number.POSITIVE_INFINITY) {
    this.#most = most;
    this.#total = total;
  }

  get isEmpty(): boolean {
    return this.#allTaken === 0;
  }

  /** Takes a slot, and returns the function that gives it back, which may be called again. Undefined at the limit. */
  take(key: string): (() => void) | undefined {
    const taken = this.#taken.get(key) ?? 0;
    const share = (this.#total - this.#allTaken) * SHARE;
    if (taken >= Math.min(this.#most, share)) return undefined;
    this.#taken.set(key, taken + 1);
    this.#allTaken += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#give(key);
      isHeld = false;
    };
  }

  #give(key: string): void {
    const left = (this.#taken.get(key) ?? 1) - 1;
    if (left === 0) this.#taken.delete(key);
    else this.#taken.set(key, left);
    this.#allTaken -= 1;
  }
}
