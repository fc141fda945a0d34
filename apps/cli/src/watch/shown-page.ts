import { once } from 'node:events';
import { writeViewUpdate } from '@svc/contract';
import type { DesktopView } from '@svc/sdk';
import type { WebSocket } from 'ws';
import type { DesktopInput } from './input-queue.ts';
import { readFromPage, type ToPage } from './page-messages.ts';

const CLOSE_MS = 1_000;

/** A page that has opened the link, as long as it is connected. */
export class ShownPage {
  readonly #socket: WebSocket;
  readonly #onInput: (input: DesktopInput) => void;
  readonly #closed = new AbortController();
  #drawn = 0;
  #onDrawn: () => void = () => undefined;

  constructor(socket: WebSocket, onInput: (input: DesktopInput) => void) {
    this.#socket = socket;
    this.#onInput = onInput;
    // On an oversized message, ws closes the connection with the right code.
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => this.#receive(data, isBinary));
    socket.once('close', () => {
      this.#closed.abort(new Error('the page has gone'));
      this.#onDrawn();
    });
  }

  /** Aborts when the page has gone. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  send(message: ToPage): void {
    this.#socket.send(JSON.stringify(message));
  }

  /** Shows a view, each update once the page has drawn the one before, until either ends. Rejects when the view fails. */
  async show(view: DesktopView): Promise<void> {
    const leave = () => void view.return();
    this.closed.addEventListener('abort', leave, { once: true });
    try {
      for await (const update of view) {
        this.#socket.send(writeViewUpdate(update));
        await this.#hasDrawn(update.number);
        if (this.closed.aborted) return;
      }
    } finally {
      this.closed.removeEventListener('abort', leave);
    }
  }

  /** Closes the page's connection, also that of a page that does not react. */
  async close(): Promise<void> {
    if (this.closed.aborted) return;
    this.#socket.close(1000);
    const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
    await once(this.closed, 'abort');
    clearTimeout(timer);
  }

  async #hasDrawn(number: number): Promise<void> {
    this.#drawn = -1;
    while (this.#drawn !== number && !this.closed.aborted) {
      const drawn = Promise.withResolvers<void>();
      this.#onDrawn = drawn.resolve;
      await drawn.promise;
    }
  }

  #receive(data: Buffer, isBinary: boolean): void {
    const message = readFromPage(data, isBinary);
    if (message?.type === 'input') {
      const { name, arguments: input } = message;
      this.#onInput({ name, arguments: input } as DesktopInput);
    } else if (message !== undefined) {
      this.#drawn = message.number;
      this.#onDrawn();
    }
  }
}
