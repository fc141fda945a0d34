/** How keys share an amount of something. */
export interface Sharing {
  /** The part of each key that no other key can take. */
  readonly own: number;
  /** For what keys take in addition, each at most its fair share. */
  readonly shared: number;
}

/** The part of one key. */
export interface Budget {
  /** What can be taken now. */
  readonly left: number;
  /** Takes up to `amount`; returns what it took. */
  take(amount: number): number;
  /** Gives back what was taken. */
  give(amount: number): void;
}

/**
 * Whole amounts, such as of bytes, that many keys hold: each up to the same limit, and all together up to a total, of which
 * each key has a part of its own.
 */
export class KeyedBudget<K = string> {
  readonly #most: number;
  readonly #own: number;
  readonly #held = new Map<K, number>();
  #free: number;

  /**
   * @param most of one key
   * @param together default: as much as the keys take
   */
  constructor(most: number, { own, shared }: Sharing = { own: most, shared: 0 }) {
    this.#most = most;
    this.#own = own;
    this.#free = shared;
  }

  /** Whether no key holds anything. */
  get isEmpty(): boolean {
    return this.#held.size === 0;
  }

  of(key: K): Budget {
    const left = () => this.#left(key);
    return {
      get left() {
        return left();
      },
      take: (amount) => {
        const taken = Math.min(amount, left());
        this.#hold(key, this.#heldBy(key) + taken);
        return taken;
      },
      give: (amount) => this.#hold(key, this.#heldBy(key) - amount),
    };
  }

  #left(key: K): number {
    const most = Math.min(this.#most, this.#own + Math.ceil(fairShare(this.#free)));
    return Math.max(0, most - this.#heldBy(key));
  }

  #hold(key: K, amount: number): void {
    this.#free -= this.#beyondOwn(amount) - this.#beyondOwn(this.#heldBy(key));
    if (amount === 0) this.#held.delete(key);
    else this.#held.set(key, amount);
  }

  #heldBy(key: K): number {
    return this.#held.get(key) ?? 0;
  }

  #beyondOwn(amount: number): number {
    return Math.max(0, amount - this.#own);
  }
}

/**
 * The most that one user of something scarce may hold while so much of it is free: a quarter. So a few users that take as much
 * as they can leave a good part to others. This is the rule of dynamic thresholds, by which switches share the memory for
 * packets (A. K. Choudhury and E. L. Hahne, 1998). Many users that give nothing back can still take all in turn, so each user
 * also needs a little that no other can take.
 */
function fairShare(free: number): number {
  return free / 4;
}
