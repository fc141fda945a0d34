import type { SessionAccess } from '@svc/contract';
import type { SvcError } from '../errors.ts';
import type { OpenSocket } from './socket.ts';

/** The address and token of a session, from the result of `create` or `resume`. */
export type SessionAddress = Pick<SessionAccess, 'chat_session_id' | 'jwt' | 'connect_url'>;

/** The part of an address that a connection needs. */
export type ConnectionAddress = Omit<SessionAddress, 'chat_session_id'>;

export interface ConnectOptions {
  /**
   * Replays the frames after this number, then continues live. 0: from the earliest frame that is kept. Default: live
   * frames only.
   */
  readonly afterSeq?: number | undefined;
  /** Ends the connection when it fires; the loop over its frames then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The maximum number of consecutive reconnects. Default 20, which takes about two minutes. */
  readonly maxReconnects?: number | undefined;
  /** Called when the connection is established, and when it is lost and a reconnect follows. */
  readonly onStatus?: ((status: 'connected' | 'disconnected') => void) | undefined;
}

/** Dependencies of a connection, replaced in tests. */
export interface ConnectionParts {
  readonly ca: string | Uint8Array | undefined;
  /** The position of the caller in its trace. */
  readonly traceparent?: () => string | undefined;
  /** Whether the session has ended. A rejection leaves that open. */
  readonly hasEnded: () => Promise<boolean>;
  /** The error for a session that has. */
  readonly ended: () => SvcError;
  readonly open?: OpenSocket;
  /** Upper bound of the first pause before a reconnect, in milliseconds. */
  readonly firstDelayMs?: number;
}
