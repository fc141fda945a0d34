import type { GuestMessage } from '@svc/contract';

/** Messages that are kept until the worker acknowledges them. */
export type NumberedMessage = Extract<GuestMessage, { n: number }>;
type WithoutNumber<M> = M extends unknown ? Omit<M, 'n'> : never;
export type OutgoingMessage = WithoutNumber<NumberedMessage>;

export interface OutboxLimits {
  /** Unacknowledged bytes beyond which {@link Outbox.drained} waits. */
  readonly unacknowledgedBytes: number;
  /** Longest line, in bytes. */
  readonly lineBytes: number;
}

/** Multiple of the limit at which droppable messages of an agent that does not wait are dropped. */
const DROP_FACTOR = 2;
/** Approximate size of a write to the socket. Lines are batched because each write is a system call. */
const BATCH_BYTES = 64 * 1024;
const COMPACT_AT = 1024;

interface Entry {
  readonly n: number;
  readonly line: string;
  readonly bytes: number;
}

/** The numbered messages to the worker, in order. Unacknowledged ones are sent again on the next connection. */
export class Outbox {
  readonly #limits: OutboxLimits;
  /** Entries before `#first` are acknowledged; entries before `#next` have been handed to the connection. */
  readonly #entries: Entry[] = [];
  #first = 0;
  #next = 0;
  #lastNumber = 0;
  #bytes = 0;
  #waiting: (() => void)[] = [];

  constructor(limits: OutboxLimits) {
    this.#limits = limits;
  }

  /**
   * Numbers and keeps a message, unless its line is too long for the link (`too_long`), or it is droppable and the
   * worker is too far behind (`full`).
   */
  push(
    message: OutgoingMessage,
    { droppable }: { droppable: boolean },
  ): 'kept' | 'too_long' | 'full' {
    if (droppable && this.#bytes > this.#limits.unacknowledgedBytes * DROP_FACTOR) return 'full';
    const n = this.#lastNumber + 1;
    const line = `${JSON.stringify({ ...message, n })}\n`;
    const bytes = Buffer.byteLength(line);
    if (bytes > this.#limits.lineBytes) return 'too_long';
    this.#lastNumber = n;
    this.#bytes += bytes;
    this.#entries.push({ n, line, bytes });
    return 'kept';
  }

  /** The worker has stored everything up to `n`. */
  acknowledge(n: number): void {
    for (;;) {
      const entry = this.#entries[this.#first];
      if (entry === undefined || entry.n > n) break;
      this.#bytes -= entry.bytes;
      this.#first += 1;
    }
    this.#next = Math.max(this.#next, this.#first);
    this.#compact();
    if (this.#bytes > this.#limits.unacknowledgedBytes / 2) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Starts again from the oldest unacknowledged message, for a new connection. */
  rewind(): void {
    this.#next = this.#first;
  }

  /** The next lines for the connection; undefined when all have been taken. */
  take(): string | undefined {
    let batch = '';
    while (batch.length < BATCH_BYTES) {
      const entry = this.#entries[this.#next];
      if (entry === undefined) break;
      batch += entry.line;
      this.#next += 1;
    }
    return batch === '' ? undefined : batch;
  }

  /** Settles when the unacknowledged bytes are below the limit. Messages pushed earlier may be dropped. */
  drained(): Promise<void> {
    if (this.#bytes <= this.#limits.unacknowledgedBytes) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #compact(): void {
    if (this.#first < COMPACT_AT || this.#first < this.#entries.length / 2) return;
    this.#entries.splice(0, this.#first);
    this.#next -= this.#first;
    this.#first = 0;
  }
}
