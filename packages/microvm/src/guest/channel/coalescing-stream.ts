import { Transform, type TransformCallback } from 'node:stream';
import { GrowingBuffer } from '@svc/service-kit/streams';

/** Pieces of at least this many bytes are worth a buffer of their own. */
const MIN_BYTES = 16 * 1024;
/** How long a smaller piece waits for more. */
const HOLD_MS = 20;

/**
 * Joins the small pieces of an untrusted sender. The limit of a stream counts bytes, but a piece costs a few hundred bytes
 * of memory, however small it is. Passes on at least 16 KiB at a time, or what has come within 20 ms.
 */
export class CoalescingStream extends Transform {
  readonly #held = new GrowingBuffer();
  #timer: NodeJS.Timeout | undefined;

  /** `maxBytes`: waits for its reader when it holds more. */
  constructor(maxBytes: number) {
    // What waits to be written is not joined yet, so only one piece may.
    super({ readableHighWaterMark: maxBytes, writableHighWaterMark: 1 });
  }

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.#held.length === 0 && piece.length >= MIN_BYTES) {
      done(null, piece);
      return;
    }
    this.#held.append(piece);
    if (this.#held.length >= MIN_BYTES) this.#pass();
    else this.#timer ??= setTimeout(() => this.#pass(), HOLD_MS);
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#pass();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#timer);
    super._destroy(error, done);
  }

  #pass(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#held.length > 0) this.push(this.#held.take());
  }
}
