/** Splits the bytes received on a connection into lines of bounded length. */
export class LineReader {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this chunk completes. Throws when a line is longer than allowed. */
  *push(chunk: Buffer): Generator<string> {
    let rest = chunk;
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      this.#add(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      const line = Buffer.concat(this.#parts).toString('utf8');
      this.#parts = [];
      this.#length = 0;
      yield line;
    }
    if (rest.length > 0) this.#add(rest);
  }

  #add(part: Buffer): void {
    this.#length += part.length;
    if (this.#length > this.#maxBytes) throw new Error('a line is too long');
    this.#parts.push(part);
  }
}
