import type { Budget } from './keyed-budget.ts';

/** What one holder takes of a budget for an amount that rises and falls, such as the length of a buffer. */
export class Charge {
  readonly #budget: Budget;
  readonly #own: number;
  #taken = 0;

  /** @param own the part of the amount that costs nothing */
  constructor(budget: Budget, own: number) {
    this.#budget = budget;
    this.#own = own;
  }

  /** Changes the amount. False when the budget has too little left for it; the holder has taken what there was then. */
  set(amount: number): boolean {
    const more = Math.max(0, amount - this.#own) - this.#taken;
    if (more <= 0) {
      this.#budget.give(-more);
      this.#taken += more;
      return true;
    }
    const taken = this.#budget.take(more);
    this.#taken += taken;
    return taken === more;
  }
}
