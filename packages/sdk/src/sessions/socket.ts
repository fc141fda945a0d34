/** How a WebSocket ended. */
export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}

/** The events of an open WebSocket. */
export interface SocketHandlers {
  message(data: string | Uint8Array): void;
  /** Called once, as the last event. */
  closed(end: SocketEnd): void;
}

/** An open WebSocket, in Node or in a browser. */
export interface SessionSocket {
  send(text: string): void;
  readonly unsentBytes: number;
  /** Pauses and resumes reading, if the platform can. */
  setPaused(paused: boolean): void;
  /** Closes with code 1000; terminates if the other side does not answer in time. */
  close(): void;
}

export interface SocketRequest {
  readonly url: string;
  /** Session JWT. */
  readonly token: string;
  readonly ca: string | Uint8Array | undefined;
  /** The position of the caller in its trace. */
  readonly traceparent: string | undefined;
  /** Cancels the opening. */
  readonly signal: AbortSignal;
}

/** Opens a WebSocket. Rejects with a SvcError when it is refused or the service is unreachable. */
export type OpenSocket = (
  request: SocketRequest,
  handlers: SocketHandlers,
) => Promise<SessionSocket>;
