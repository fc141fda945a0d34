/** A number of bytes that may be held at once, within the budget of a parent if there is one. */
export class ByteBudget {
  readonly #parent: ByteBudget | undefined;
  #left: number;

  constructor(bytes: number, parent?: ByteBudget) {
    this.#left = bytes;
    this.#parent = parent;
  }

  /** Takes up to `bytes`; answers how many it got. */
  take(bytes: number): number {
    const here = Math.min(bytes, this.#left);
    const taken = this.#parent === undefined ? here : this.#parent.take(here);
    this.#left -= taken;
    return taken;
  }

  give(bytes: number): void {
    this.#left += bytes;
    this.#parent?.give(bytes);
  }

  get left(): number {
    return this.#left;
  }
}
