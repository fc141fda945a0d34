import type { Socket } from 'node:net';
import { readChunk } from '../channel/read-answer.ts';

/** Reads a connection in pieces of given sizes. Holds about as much as is asked for. */
export class ByteReader {
  readonly #socket: Socket;
  readonly #signal: AbortSignal;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
  }

  /** Whether this many bytes can be taken now. */
  has(size: number): boolean {
    return this.#buffer.length >= size;
  }

  /** Waits until this many bytes can be taken. @throws MicrovmError `guest_unreachable` when the connection ends before */
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

  #next(): Promise<Buffer> {
    return readChunk(this.#socket, this.#signal);
  }
}
