import { PassThrough, type Readable } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { formatEvent, KEEPALIVE_COMMENT } from '@svc/service-kit';

const KEEPALIVE_MS = 15_000;
const BUFFER_BYTES = 256 * 1024;
/** A reader that takes nothing for this long is treated as gone. */
const STALL_MS = 60_000;

/** The event stream of one command: bounded, held back by a slow reader, given up with one that stands still. */
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
    // The headers go out with the first byte: the caller learns at once that the command has begun.
    this.#out.write(KEEPALIVE_COMMENT);
    // An aborted answer destroys the stream; whoever waits for its drain is released by `close`.
    this.#out.on('error', () => undefined);
  }

  /** The bytes to answer with. */
  get body(): Readable {
    return this.#out;
  }

  /** Aborts when the reader has stood still for too long. */
  get stalled(): AbortSignal {
    return this.#stalled.signal;
  }

  /** Writes an event; the promise holds back the producer until there is room again. */
  async send(event: string, data: unknown): Promise<void> {
    if (this.#out.destroyed || this.#out.writableEnded) return;
    if (!this.#out.write(formatEvent(event, data))) await this.#drained();
  }

  end(): void {
    clearInterval(this.#keepalive);
    this.#out.end();
  }

  async #drained(): Promise<void> {
    const room = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#stalled.abort(new ServiceError('request_timeout'));
      room.resolve();
    }, this.#stallMs);
    const onRoom = () => room.resolve();
    this.#out.once('drain', onRoom).once('close', onRoom);
    try {
      await room.promise;
    } finally {
      clearTimeout(timer);
      this.#out.off('drain', onRoom).off('close', onRoom);
    }
  }
}
