import { type ClientFrame, LIMITS } from '@svc/contract';
import { SvcError } from '../errors.ts';

/** Limits of the queue of unsent frames. */
const MOST_FRAMES = 256;
const MOST_BYTES = 4 * LIMITS.clientFrameBytes;

const utf8 = new TextEncoder();

/** The connection that carries frames. */
interface Carrier {
  send(text: string): void;
  readonly unsentBytes: number;
}

/** Sends frames, and queues them while there is no connection. */
export class Outbox {
  readonly #waiting: { readonly frame: ClientFrame; readonly text: string }[] = [];
  readonly #onSent: (frame: ClientFrame) => void;
  #bytes = 0;
  #carrier: Carrier | undefined;

  /** `onSent` is called with each frame that is sent. */
  constructor(onSent: (frame: ClientFrame) => void) {
    this.#onSent = onSent;
  }

  /** @throws SvcError `frame_too_large`, or `send_queue_full` when the queue is full */
  send(frame: ClientFrame): void {
    const text = JSON.stringify(frame);
    const bytes = utf8.encode(text).length;
    if (bytes > LIMITS.clientFrameBytes) {
      throw new SvcError({ code: 'frame_too_large', detail: 'Send a frame of at most 1 MiB.' });
    }
    const unsent = this.#bytes + (this.#carrier?.unsentBytes ?? 0);
    if (this.#waiting.length >= MOST_FRAMES || unsent + bytes > MOST_BYTES) {
      throw new SvcError({
        code: 'send_queue_full',
        detail: 'Too much waits to be sent; wait until the session is connected and has taken it.',
      });
    }
    if (this.#carrier !== undefined) {
      this.#carrier.send(text);
      this.#onSent(frame);
      return;
    }
    this.#waiting.push({ frame, text });
    this.#bytes += bytes;
  }

  /** Sends the queued frames, and later ones immediately. */
  open(carrier: Carrier): void {
    this.#carrier = carrier;
    this.#bytes = 0;
    for (const { frame, text } of this.#waiting.splice(0)) {
      carrier.send(text);
      this.#onSent(frame);
    }
  }

  /** Queues frames from now on. */
  shut(): void {
    this.#carrier = undefined;
  }
}
