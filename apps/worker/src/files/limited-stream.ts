import { Transform, type TransformCallback } from 'node:stream';
import { ServiceError } from '@svc/contract';

/** Passes bytes through, calls `onProgress` for each chunk, and fails beyond `maxBytes`. */
export class LimitedStream extends Transform {
  readonly #maxBytes: number;
  readonly #onProgress: () => void;
  #bytes = 0;

  constructor(options: { readonly maxBytes: number; readonly onProgress: () => void }) {
    super({ highWaterMark: 256 * 1024 });
    this.#maxBytes = options.maxBytes;
    this.#onProgress = options.onProgress;
  }

  /** Bytes received so far. */
  get bytes(): number {
    return this.#bytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#bytes += chunk.length;
    this.#onProgress();
    if (this.#bytes > this.#maxBytes) done(new ServiceError('payload_too_large'));
    else done(null, chunk);
  }
}
