import type { Socket } from 'node:net';

/** At most one connection that is kept open between requests, so that the next need not wait for a new one. */
export class KeptConnection {
  #socket: Socket | undefined;
  #closed = false;

  /** The kept connection, now the caller's; undefined when there is none. */
  take(): Socket | undefined {
    const socket = this.#socket;
    this.#socket = undefined;
    return socket?.destroyed === true ? undefined : socket?.ref();
  }

  /** Keeps a connection on which nothing is under way, or ends it when one is kept already. */
  keep(socket: Socket): void {
    if (this.#closed || this.#socket?.destroyed === false) socket.destroy();
    else this.#socket = socket.unref();
  }

  /** Ends what is kept; nothing is kept any more. */
  close(): void {
    this.#closed = true;
    this.#socket?.destroy();
    this.#socket = undefined;
  }
}
