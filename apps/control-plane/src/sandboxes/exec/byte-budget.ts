/** A bound of the bytes held at a time, optionally within a parent's bound. */
export class ByteBudget {
  readonly #parent: ByteBudget | undefined;
  #left: number;

  constructor(bytes: number, parent?: ByteBudget) {
    this.#left = bytes;
    this.#parent = parent;
  }

  /** Takes up to `bytes`; returns the number taken. */
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
