const LENGTH_BYTES = 2;

/** The longest message whose length fits into its two bytes. */
export const MAX_FRAMED_BYTES = 0xffff;

/** A message preceded by its length, as required for DNS over TCP. @throws RangeError when it is too long to be framed */
export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** Splits a byte stream into messages. Buffers at most one incomplete message. */
export class FrameReader {
  readonly #maxBytes: number;
  #rest: Buffer = Buffer.alloc(0);
  #broken = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** True after a message of length 0 or over the limit. The rest of the stream cannot be parsed. */
  get broken(): boolean {
    return this.#broken;
  }

  /** The messages that this chunk completes. */
  read(chunk: Buffer): Buffer[] {
    const messages: Buffer[] = [];
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (!this.#broken && this.#rest.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + this.#rest.readUInt16BE();
      this.#broken = end === LENGTH_BYTES || end > LENGTH_BYTES + this.#maxBytes;
      if (this.#broken || this.#rest.length < end) break;
      messages.push(this.#rest.subarray(LENGTH_BYTES, end));
      this.#rest = this.#rest.subarray(end);
    }
    return messages;
  }
}
