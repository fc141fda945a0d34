import type { Budget } from '@svc/service-kit/concurrency';
import { UnsentBytes } from '@svc/service-kit/websocket';
import type { WebSocket } from 'ws';

/** Buffered bytes at which the sender must pause, and at which it may resume. */
const HIGH_BYTES = 512 * 1024;
const LOW_BYTES = 128 * 1024;

export interface SendBufferEvents {
  /** The buffer is full: the sender must pause. */
  onFull(): void;
  /** The sender may resume. */
  onDrained(): void;
  /** The buffer was full and nothing was sent for `stalledMs`, or the budget has no room for it. */
  onStalled(): void;
}

export interface SendBufferOptions extends SendBufferEvents {
  readonly stalledMs: number;
  /** For what is buffered beyond the bytes at which the sender pauses: the last message can be long. */
  readonly budget: Budget;
}

/** The buffer of frames to one side of a proxy. It is bounded if the sender obeys the events. */
export class SendBuffer {
  readonly #socket: WebSocket;
  readonly #unsent: UnsentBytes;
  readonly #stalledMs: number;
  readonly #events: SendBufferEvents;
  #stalled: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket, { stalledMs, budget, ...events }: SendBufferOptions) {
    this.#socket = socket;
    this.#unsent = new UnsentBytes(socket, HIGH_BYTES, budget);
    this.#stalledMs = stalledMs;
    this.#events = events;
  }

  get isFull(): boolean {
    return this.#stalled !== undefined;
  }

  send(data: Buffer | string, binary = false): void {
    if (!this.#unsent.send(data, binary, this.#sent)) {
      this.#events.onStalled();
      return;
    }
    if (this.#stalled === undefined && this.#socket.bufferedAmount >= HIGH_BYTES) {
      this.#stalled = setTimeout(() => this.#events.onStalled(), this.#stalledMs);
      this.#events.onFull();
    }
  }

  /** Stops watching the buffer. */
  end(): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
  }

  readonly #sent = (): void => {
    if (this.#stalled === undefined) return;
    if (this.#socket.bufferedAmount > LOW_BYTES) {
      this.#stalled.refresh();
      return;
    }
    this.end();
    this.#events.onDrained();
  };
}
