import type { Socket } from 'node:net';
import type { GuestMessage, WorkerMessage } from '@svc/contract';
import { LineReader } from './line-reader.ts';
import type { Outbox } from './outbox.ts';
import { readWorkerMessage } from './worker-message.ts';

const KEEPALIVE_MS = 30_000;

export interface LinkConnectionOptions {
  /** How long it may take to name the token, in milliseconds. */
  readonly authenticateMs: number;
  readonly lineBytes: number;
  /** Gets each message in order. Throws to end the connection. */
  readonly onMessage: (connection: LinkConnection, message: WorkerMessage) => void;
  readonly onClosed: (connection: LinkConnection) => void;
}

/** One connection to the link, a stranger's until it is let in. */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #options: LinkConnectionOptions;
  readonly #deadline: NodeJS.Timeout;
  #outbox: Outbox | undefined;
  #pumpIsDue = false;

  constructor(socket: Socket, options: LinkConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#deadline = setTimeout(() => socket.destroy(), options.authenticateMs);
    const lines = new LineReader(options.lineBytes);
    socket.setNoDelay(true).setKeepAlive(true, KEEPALIVE_MS);
    socket
      .on('data', (chunk) => this.#read(lines, chunk))
      .on('drain', () => this.#pump())
      .on('end', () => socket.destroy())
      .on('error', () => socket.destroy())
      .once('close', () => {
        clearTimeout(this.#deadline);
        options.onClosed(this);
      });
  }

  get isLetIn(): boolean {
    return this.#outbox !== undefined;
  }

  /** It has named the token: from now on it gets what the outbox holds. */
  letIn(outbox: Outbox): void {
    clearTimeout(this.#deadline);
    this.#outbox = outbox;
    outbox.rewind();
    this.wake();
  }

  /** Sends something that concerns this connection alone. */
  answer(message: Exclude<GuestMessage, { n: number }>): void {
    this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** The outbox holds more. What is said in one turn of the loop goes out together. */
  wake(): void {
    if (this.#pumpIsDue) return;
    this.#pumpIsDue = true;
    setImmediate(() => {
      this.#pumpIsDue = false;
      this.#pump();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #pump(): void {
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
      // Whoever does not speak the protocol or lacks the token is told nothing.
      this.#socket.destroy();
    }
  }
}
