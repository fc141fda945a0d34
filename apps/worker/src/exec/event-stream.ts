import { PassThrough, type Readable } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { formatEvent, KEEPALIVE_COMMENT } from '@svc/service-kit';

const KEEPALIVE_MS = 15_000;
const BUFFER_BYTES = 256 * 1024;
/** A reader that reads nothing for this long is treated as gone. */
const STALL_MS = 60_000;

/** The event stream of one command. Its buffer is bounded: a slow reader holds the command back, a stalled one ends it. */
export class EventStream {
  readonly #out = new PassThrough({ highWaterMark: BUFFER_BYTES });
  readonly #keepalive: NodeJS.Timeout;
  readonly #stalled = new AbortController();
  readonly #stallMs: number;

  constructor(options: { readonly stallMs?: number } = {}) {
    this.#stallMs = options.stallMs ?? STALL_MS;
    this.#keepalive = setInterval(() => {
      if (!this.#out.writableNeedDrain) this.#out.write(KEEPALIVE_COMMENT);
    }, KEEPALIVE_MS);
    this.#out.once('close', () => clearInterval(this.#keepalive));
    // Sends the headers, which tells the caller that the command has begun.
    this.#out.write(KEEPALIVE_COMMENT);
    // An aborted response destroys the stream; a pending drain is then released by `close`.
    this.#out.on('error', () => undefined);
  }

  /** The body of the response. */
  get body(): Readable {
    return this.#out;
  }

  /** Aborts when the reader has stalled. */
  get stalled(): AbortSignal {
    return this.#stalled.signal;
  }

  /** Writes an event. Settles when the buffer accepts more, with the characters that were written. */
  async send(event: string, data: unknown): Promise<number> {
    if (this.#out.destroyed || this.#out.writableEnded) return 0;
    const text = formatEvent(event, data);
    if (!this.#out.write(text)) await this.#drained();
    return text.length;
  }

  end(): void {
    clearInterval(this.#keepalive);
    this.#out.end();
  }

  async #drained(): Promise<void> {
    const drained = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#stalled.abort(new ServiceError('request_timeout'));
      drained.resolve();
    }, this.#stallMs);
    const onDrained = () => drained.resolve();
    this.#out.once('drain', onDrained).once('close', onDrained);
    try {
      await drained.promise;
    } finally {
      clearTimeout(timer);
      this.#out.off('drain', onDrained).off('close', onDrained);
    }
  }
}
