import { MicrovmError } from '../../microvm-error.ts';

/** Reads a stream in pieces of given sizes. Holds about as much as is asked for. */
export class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Whether this many bytes can be taken now. */
  has(size: number): boolean {
    return this.#buffer.length >= size;
  }

  /** Waits until this many bytes can be taken. @throws MicrovmError `guest_unreachable` when the stream ends before */
  async fill(size: number): Promise<void> {
    const parts = [this.#buffer];
    let length = this.#buffer.length;
    while (length < size) {
      const part = await this.#next();
      parts.push(part);
      length += part.length;
    }
    this.#buffer = parts.length === 1 ? this.#buffer : Buffer.concat(parts, length);
  }

  /** Takes bytes that are there. The result is a view of what was received. */
  take(size: number): Buffer {
    const taken = this.#buffer.subarray(0, size);
    this.#buffer = this.#buffer.subarray(size);
    return taken;
  }

  /** Takes at least one byte and at most `max`, whatever arrives next. */
  async some(max: number): Promise<Buffer> {
    if (this.#buffer.length === 0) this.#buffer = await this.#next();
    return this.take(Math.min(max, this.#buffer.length));
  }

  async #next(): Promise<Buffer> {
    const { done, value } = await this.#source.next();
    if (done === true) {
      throw new MicrovmError('guest_unreachable', 'the guest closed its channel');
    }
    return value;
  }
}
