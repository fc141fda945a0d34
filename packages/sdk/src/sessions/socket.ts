/** How a WebSocket ended. */
export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}

/** What happens on a WebSocket that is open. */
export interface SocketHandlers {
  message(data: string | Uint8Array): void;
  /** Once, and nothing after it. */
  closed(end: SocketEnd): void;
}

/** A WebSocket that is open, in Node or in a browser. */
export interface SessionSocket {
  send(text: string): void;
  readonly unsentBytes: number;
  /** Stops and restarts reading, where the platform can. */
  setPaused(paused: boolean): void;
  /** Ends it with 1000; cut when the other side does not answer in time. */
  close(): void;
}

export interface SocketRequest {
  readonly url: string;
  /** Session JWT. */
  readonly token: string;
  readonly ca: string | Uint8Array | undefined;
  /** Gives up while it is being opened. */
  readonly signal: AbortSignal;
}

/** Opens a WebSocket. Rejects with a SvcError when it is refused or cannot be reached. */
export type OpenSocket = (
  request: SocketRequest,
  handlers: SocketHandlers,
) => Promise<SessionSocket>;
