const LINE_FEED = 0x0a;

/** The guest violated the protocol of the agent link. */
export class LineProtocolError extends Error {
  override readonly name = 'LineProtocolError';
}

/** Splits a stream of bytes into lines, and buffers at most one line of the maximum length. */
export class LineSplitter {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #buffered = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this chunk completes. @throws LineProtocolError for a line that is too long */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let at = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, at)) {
      this.#append(chunk.subarray(at, end));
      lines.push(this.#take());
      at = end + 1;
    }
    if (at < chunk.length) this.#append(chunk.subarray(at));
    return lines;
  }

  #append(part: Buffer): void {
    this.#buffered += part.length;
    if (this.#buffered > this.#maxBytes) throw new LineProtocolError('a line is too long');
    this.#parts.push(part);
  }

  #take(): Buffer {
    const [only] = this.#parts;
    const line = this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#buffered = 0;
    return line;
  }
}
