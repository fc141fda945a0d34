import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { ServiceError } from '@svc/contract';

export interface LimitedStreamOptions {
  readonly maxBytes: number;
  /** Called for each chunk. */
  readonly onProgress?: () => void;
}

/** Passes bytes through and counts them. Fails with `payload_too_large` after more than `maxBytes`. */
export class LimitedStream extends Transform {
  readonly #maxBytes: number;
  readonly #onProgress: (() => void) | undefined;
  #bytes = 0;

  constructor(options: LimitedStreamOptions) {
    super({ highWaterMark: 256 * 1024 });
    this.#maxBytes = options.maxBytes;
    this.#onProgress = options.onProgress;
  }

  /** The number of bytes received so far. */
  get bytes(): number {
    return this.#bytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#bytes += chunk.length;
    this.#onProgress?.();
    if (this.#bytes > this.#maxBytes) done(new ServiceError('payload_too_large'));
    else done(null, chunk);
  }
}

/**
 * Pipes the body of a request into a limited stream. Unlike a pipeline it leaves the body open when the stream fails or
 * is destroyed, because the response is sent on the same connection. A body that breaks off destroys the stream.
 * The returned function detaches and destroys the stream.
 */
export function limitBody(body: Readable, limited: LimitedStream): () => void {
  const onError = (error: Error) => limited.destroy(error);
  const onClose = () => {
    if (!body.readableEnded) limited.destroy(new Error('the body ended before it was complete'));
  };
  limited.on('error', () => body.unpipe(limited));
  body.once('error', onError).once('close', onClose).pipe(limited);
  return () => {
    body.unpipe(limited).off('error', onError).off('close', onClose);
    limited.destroy();
  };
}
