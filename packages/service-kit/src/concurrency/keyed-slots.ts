import { fairShare } from './fair-share.ts';

/** The slots of many keys. */
export interface SharedSlots {
  /** Slots of each key that no other key can take. */
  readonly own: number;
  /** Slots for what keys take in addition, each at most its fair share. */
  readonly shared: number;
}

/**
 * Counts how much each key holds, up to the same limit for all, and bounds what many keys hold together. Nobody waits: a
 * key that finds no free slot is refused.
 */
export class KeyedSlots<K = string> {
  readonly #most: number;
  readonly #own: number;
  readonly #taken = new Map<K, number>();
  #free: number;

  /**
   * @param most of one key
   * @param together default: as many as the keys take
   */
  constructor(most: number, { own, shared }: SharedSlots = { own: most, shared: 0 }) {
    this.#most = most;
    this.#own = own;
    this.#free = shared;
  }

  get isEmpty(): boolean {
    return this.#taken.size === 0;
  }

  /** Takes a slot, and returns the function that gives it back, which may be called again. Undefined at the limit. */
  take(key: K): (() => void) | undefined {
    const taken = this.#taken.get(key) ?? 0;
    const most = Math.min(this.#most, this.#own + fairShare(this.#free));
    if (taken >= most) return undefined;
    if (taken >= this.#own) this.#free -= 1;
    this.#taken.set(key, taken + 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#give(key);
      isHeld = false;
    };
  }

  #give(key: K): void {
    const left = (this.#taken.get(key) ?? 1) - 1;
    if (left >= this.#own) this.#free += 1;
    if (left === 0) this.#taken.delete(key);
    else this.#taken.set(key, left);
  }
}
