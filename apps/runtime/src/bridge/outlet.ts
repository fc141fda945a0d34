import type { WebSocket } from 'ws';

/** Buffered bytes at which readers are made to wait, and at which they may go on. */
const HIGH_BYTES = 512 * 1024;
const LOW_BYTES = 128 * 1024;

export interface OutletEvents {
  /** The buffer is full: read nothing more that would go into it. */
  onFull(): void;
  /** There is room again. */
  onRoom(): void;
  /** The buffer was full and nothing of it was taken for `stalledMs`. */
  onStalled(): void;
}

/** What is written to one side of a bridge. Its buffer is bounded by readers that stop reading. */
export class Outlet {
  readonly #socket: WebSocket;
  readonly #stalledMs: number;
  readonly #events: OutletEvents;
  #stalled: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket, stalledMs: number, events: OutletEvents) {
    this.#socket = socket;
    this.#stalledMs = stalledMs;
    this.#events = events;
  }

  get isFull(): boolean {
    return this.#stalled !== undefined;
  }

  send(data: Buffer | string, binary = false): void {
    this.#socket.send(data, { binary }, this.#taken);
    if (this.#stalled === undefined && this.#socket.bufferedAmount >= HIGH_BYTES) {
      this.#stalled = setTimeout(() => this.#events.onStalled(), this.#stalledMs);
      this.#events.onFull();
    }
  }

  /** Ends the watch over the buffer. */
  end(): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
  }

  readonly #taken = (): void => {
    if (this.#stalled === undefined) return;
    if (this.#socket.bufferedAmount > LOW_BYTES) {
      this.#stalled.refresh();
      return;
    }
    this.end();
    this.#events.onRoom();
  };
}
