import { KeyedBudget, type Sharing } from './keyed-budget.ts';

/**
 * Counts how much each key holds, up to the same limit for all, and bounds what many keys hold together. Nobody waits: a
 * key that finds no free slot is refused.
 */
export class KeyedSlots<K = string> {
  readonly #slots: KeyedBudget<K>;

  /** Parameters as of {@link KeyedBudget}. */
  constructor(most: number, together?: Sharing) {
    this.#slots = new KeyedBudget(most, together);
  }

  get isEmpty(): boolean {
    return this.#slots.isEmpty;
  }

  /** Takes a slot, and returns the function that gives it back, which may be called again. Undefined at the limit. */
  take(key: K): (() => void) | undefined {
    const slots = this.#slots.of(key);
    if (slots.take(1) === 0) return undefined;
    let isHeld = true;
    return () => {
      if (isHeld) slots.give(1);
      isHeld = false;
    };
  }
}
