const LENGTH_BYTES = 2;

/** A message with its length in front, as DNS over TCP sends it. */
export function frame(message: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** Cuts a byte stream into messages, holding at most one unfinished message. */
export class FrameReader {
  readonly #maxBytes: number;
  #rest: Buffer = Buffer.alloc(0);
  #broken = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** True after a message of length 0 or over the limit: nothing sensible can follow. */
  get broken(): boolean {
    return this.#broken;
  }

  /** The messages that are complete with this chunk. */
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
