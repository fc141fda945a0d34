const FIRST_BYTES = 256;
const EMPTY = Buffer.alloc(0);

/**
 * Collects the chunks of an untrusted sender in one buffer, which doubles when it is full. A list of chunks instead would
 * cost a few hundred bytes for each, however small it is.
 */
export class GrowingBuffer {
  readonly #maxBytes: number;
  #buffer: Buffer = EMPTY;
  #length = 0;

  /** `maxBytes`: of all chunks together. Default: the caller bounds them. */
  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes;
  }

  /** The number of bytes collected. */
  get length(): number {
    return this.#length;
  }

  /** Appends a copy of the chunk. False when it exceeds the limit; nothing is appended then. */
  append(chunk: Buffer): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) return false;
    if (length > this.#buffer.length) this.#grow(length);
    chunk.copy(this.#buffer, this.#length);
    this.#length = length;
    return true;
  }

  /** The bytes collected, without a copy. The buffer is empty afterwards. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length);
    this.#buffer = EMPTY;
    this.#length = 0;
    return taken;
  }

  #grow(length: number): void {
    const doubled = Math.min(Math.max(2 * this.#buffer.length, FIRST_BYTES), this.#maxBytes);
    const larger = Buffer.allocUnsafe(Math.max(doubled, length));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}
