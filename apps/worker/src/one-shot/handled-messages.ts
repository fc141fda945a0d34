/** The guest's messages that have been handled, and those among them that the guest has to keep nevertheless. */
export class HandledMessages {
  #last = 0;
  /** The first and the newest, in ascending order. */
  #held: number[] = [];

  /** The number of the last message handled; 0 for none. */
  get last(): number {
    return this.#last;
  }

  /** The number up to which the guest need not send messages again. */
  get acknowledgeable(): number {
    const [first] = this.#held;
    return first === undefined ? this.#last : first - 1;
  }

  /** Message `n` has been handled. Messages are handled in order. */
  add(n: number): void {
    this.#last = n;
  }

  /** The guest has to keep message `n`, and so those after it. It supersedes those held before, except for the first. */
  hold(n: number): void {
    this.#held = [...this.#held.slice(0, 1), n];
  }

  /** The guest may forget message `n` and those before it. */
  release(n: number): void {
    this.#held = this.#held.filter((held) => held > n);
  }
}
