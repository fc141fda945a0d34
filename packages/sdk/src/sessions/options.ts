import type { SessionAccess } from '@svc/contract';
import type { OpenSocket } from './socket.ts';

/** Where a session is, and what opens it: of the answer of `create` or `resume`. */
export type SessionAddress = Pick<SessionAccess, 'chat_session_id' | 'jwt' | 'connect_url'>;

export interface ConnectOptions {
  /**
   * Shows what came after this frame first, then goes on live. 0: the earliest that is kept. Default: only what comes
   * from now on.
   */
  readonly afterSeq?: number | undefined;
  /** Ends the connection when it fires; the loop over its frames then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** How often in a row it is tried to reach the session again. Default 10, which takes about a minute. */
  readonly maxReconnects?: number | undefined;
  /** Told when the connection stands, and when it is lost and tried again. */
  readonly onStatus?: ((status: 'connected' | 'disconnected') => void) | undefined;
}

/** What a connection needs besides: replaced in tests. */
export interface ConnectionParts {
  readonly ca: string | Uint8Array | undefined;
  /** Whether the session is over. May reject, which says nothing. */
  readonly hasEnded: () => Promise<boolean>;
  readonly open?: OpenSocket;
  /** Longest first wait before another try, in milliseconds. */
  readonly firstDelayMs?: number;
}
