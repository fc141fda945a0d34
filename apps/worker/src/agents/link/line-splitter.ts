const LINE_FEED = 0x0a;

/** The other side sent what is no line of the protocol. */
export class LineProtocolError extends Error {
  override readonly name = 'LineProtocolError';
}

/** Cuts a stream of bytes into lines, and holds no more of an unfinished one than a line may have. */
export class LineSplitter {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #held = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that are whole with this chunk. @throws LineProtocolError for a line that is too long */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let at = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, at)) {
      this.#hold(chunk.subarray(at, end));
      lines.push(this.#take());
      at = end + 1;
    }
    if (at < chunk.length) this.#hold(chunk.subarray(at));
    return lines;
  }

  #hold(part: Buffer): void {
    this.#held += part.length;
    if (this.#held > this.#maxBytes) throw new LineProtocolError('a line is too long');
    this.#parts.push(part);
  }

  #take(): Buffer {
    const [only] = this.#parts;
    const line = this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#held = 0;
    return line;
  }
}
