/** Counts how much each key holds, up to the same limit for all. Nobody waits: who finds no free slot is refused. */
export class KeyedSlots {
  readonly #most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a slot, and returns the function that gives it back, which may be called again. Undefined at the limit. */
  take(key: string): (() => void) | undefined {
    const taken = this.#taken.get(key) ?? 0;
    if (taken >= this.#most) return undefined;
    this.#taken.set(key, taken + 1);
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
  }
}
