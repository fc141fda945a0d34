/** What the worker has not acknowledged: kept in order, sent again to a connection that comes later. */

import type { GuestMessage } from '@svc/contract';

/** Messages that are kept until the worker has them. */
export type NumberedMessage = Extract<GuestMessage, { n: number }>;
type WithoutNumber<M> = M extends unknown ? Omit<M, 'n'> : never;
export type OutgoingMessage = WithoutNumber<NumberedMessage>;

export interface OutboxLimits {
  /** Unacknowledged bytes beyond which {@link Outbox.drained} waits. */
  readonly roomBytes: number;
  /** Longest line. */
  readonly lineBytes: number;
}

/** How far an agent that does not wait may go beyond the room, before what it says is dropped. */
const OVERDRAFT = 2;
/** Lines are handed to the socket together, up to about so many bytes: each write is a system call. */
const BATCH_BYTES = 64 * 1024;
const COMPACT_AT = 1024;

interface Entry {
  readonly n: number;
  readonly line: string;
  readonly bytes: number;
}

/** The numbered messages to the worker. */
export class Outbox {
  readonly #limits: OutboxLimits;
  /** What is before `#first` has been acknowledged; what is before `#next` has been handed to the connection. */
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
   * Numbers and keeps a message. `too_long`: its line is longer than the link carries; `full`: the reader is so
   * far behind that what may be dropped is. It is then not kept.
   */
  push(
    message: OutgoingMessage,
    { droppable }: { droppable: boolean },
  ): 'kept' | 'too_long' | 'full' {
    if (droppable && this.#bytes > this.#limits.roomBytes * OVERDRAFT) return 'full';
    const n = this.#lastNumber + 1;
    const line = `${JSON.stringify({ ...message, n })}\n`;
    const bytes = Buffer.byteLength(line);
    if (bytes > this.#limits.lineBytes) return 'too_long';
    this.#lastNumber = n;
    this.#bytes += bytes;
    this.#entries.push({ n, line, bytes });
    return 'kept';
  }

  /** The worker keeps everything up to `n`. */
  acknowledge(n: number): void {
    for (;;) {
      const entry = this.#entries[this.#first];
      if (entry === undefined || entry.n > n) break;
      this.#bytes -= entry.bytes;
      this.#first += 1;
    }
    this.#next = Math.max(this.#next, this.#first);
    this.#compact();
    if (this.#bytes > this.#limits.roomBytes / 2) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** A new connection gets all that is unacknowledged. */
  rewind(): void {
    this.#next = this.#first;
  }

  /** The next lines for the connection; undefined when it has all. */
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

  /** Settles when there is room; whoever goes on earlier may see messages dropped. */
  drained(): Promise<void> {
    if (this.#bytes <= this.#limits.roomBytes) return Promise.resolve();
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
