import { GrowingBuffer } from '@svc/service-kit/streams';

const LINE_FEED = 0x0a;

/** The guest violated the protocol of the agent link. */
export class LineProtocolError extends Error {
  override readonly name = 'LineProtocolError';
}

/** Splits a stream of bytes into lines, and buffers at most one line of the maximum length. */
export class LineSplitter {
  readonly #maxBytes: number;
  readonly #partial: GrowingBuffer;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#partial = new GrowingBuffer(maxBytes);
  }

  /** The length of the line that is not complete. */
  get partialBytes(): number {
    return this.#partial.length;
  }

  /** The lines that this chunk completes. @throws LineProtocolError for a line that is too long */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let at = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, at)) {
      lines.push(this.#complete(chunk.subarray(at, end)));
      at = end + 1;
    }
    if (at < chunk.length) this.#append(chunk.subarray(at));
    return lines;
  }

  #complete(last: Buffer): Buffer {
    if (this.#partial.length === 0 && last.length <= this.#maxBytes) return last;
    this.#append(last);
    return this.#partial.take();
  }

  #append(part: Buffer): void {
    if (!this.#partial.append(part)) throw new LineProtocolError('a line is too long');
  }
}
