import type { Socket } from 'node:net';

/** At most one idle connection, kept open so that the next request need not wait for a new one. */
export class KeptConnection {
  #socket: Socket | undefined;
  #closed = false;

  /** Hands the kept connection over to the caller. Undefined when there is none. */
  take(): Socket | undefined {
    const socket = this.#socket;
    this.#socket = undefined;
    return socket?.destroyed === true ? undefined : socket?.ref();
  }

  /** Keeps an idle connection, or closes it when another one is already kept. */
  keep(socket: Socket): void {
    if (this.#closed || this.#socket?.destroyed === false) socket.destroy();
    else this.#socket = socket.unref();
  }

  /** Closes the kept connection. No connection is kept after this. */
  close(): void {
    this.#closed = true;
    this.#socket?.destroy();
    this.#socket = undefined;
  }
}
