import type { Socket } from 'node:net';
import type { GuestMessage, WorkerMessage } from '@svc/contract';
import { LineReader } from './line-reader.ts';
import type { Outbox } from './outbox.ts';
import { readWorkerMessage } from './worker-message.ts';

const KEEPALIVE_MS = 30_000;

export interface LinkConnectionOptions {
  /** Time limit for authentication, in milliseconds. */
  readonly authenticateMs: number;
  readonly lineBytes: number;
  /** Receives each message in order. Throws to end the connection. */
  readonly onMessage: (connection: LinkConnection, message: WorkerMessage) => void;
  readonly onClosed: (connection: LinkConnection) => void;
}

/** One connection to the link, untrusted until it has authenticated. */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #options: LinkConnectionOptions;
  readonly #deadline: NodeJS.Timeout;
  #outbox: Outbox | undefined;
  #sendScheduled = false;

  constructor(socket: Socket, options: LinkConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#deadline = setTimeout(() => socket.destroy(), options.authenticateMs);
    const lines = new LineReader(options.lineBytes);
    socket.setNoDelay(true).setKeepAlive(true, KEEPALIVE_MS);
    socket
      .on('data', (chunk) => this.#read(lines, chunk))
      .on('drain', () => this.#sendOutbox())
      .on('end', () => socket.destroy())
      .on('error', () => socket.destroy())
      .once('close', () => {
        clearTimeout(this.#deadline);
        options.onClosed(this);
      });
  }

  get isAuthenticated(): boolean {
    return this.#outbox !== undefined;
  }

  /** The connection has presented the token: from now on the outbox is sent to it. */
  authenticated(outbox: Outbox): void {
    clearTimeout(this.#deadline);
    this.#outbox = outbox;
    outbox.rewind();
    this.wake();
  }

  /** Sends a message that concerns this connection alone. */
  answer(message: Exclude<GuestMessage, { n: number }>): void {
    this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** The outbox has new messages. Those of one turn of the event loop are sent together. */
  wake(): void {
    if (this.#sendScheduled) return;
    this.#sendScheduled = true;
    setImmediate(() => {
      this.#sendScheduled = false;
      this.#sendOutbox();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #sendOutbox(): void {
    while (this.#socket.writable && !this.#socket.writableNeedDrain) {
      const lines = this.#outbox?.take();
      if (lines === undefined) return;
      this.#socket.write(lines);
    }
  }

  #read(lines: LineReader, chunk: Buffer): void {
    try {
      for (const line of lines.push(chunk)) {
        if (this.#socket.destroyed) return;
        this.#options.onMessage(this, readWorkerMessage(line));
      }
    } catch {
      // A peer that violates the protocol or lacks the token gets no answer.
      this.#socket.destroy();
    }
  }
}
