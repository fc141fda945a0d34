import { randomUUID } from 'node:crypto';
import type {
  CreateSessionRequest,
  DeleteSessionResponse,
  ListSessionsQuery,
  ListSessionsResponse,
  ResumedSession,
  ResumeSessionRequest,
  SessionAccess,
  SessionRecord,
} from '@svc/contract';
import { SessionConnection } from '../sessions/connection.ts';
import { sessionEnded } from '../sessions/ends.ts';
import type { ConnectOptions, SessionAddress } from '../sessions/options.ts';
import type { CallOptions, Transport } from '../transport/request.ts';
import type { CreateOptions } from './sandboxes.ts';

const PATH = '/v1/sessions';
/** A start may have to boot a micro-VM, and to stop another one first. */
const START_TIMEOUT_MS = 180_000;
const DELETE_TIMEOUT_MS = 120_000;
/** Time limit for finding out whether an unresponsive session has ended. */
const LOOK_TIMEOUT_MS = 5_000;

/** Options of a deletion. */
export interface DeleteSessionOptions extends CallOptions {
  /** Erases the conversation, the files and the frames as well. */
  readonly erase?: boolean;
}

/** Sessions: conversations with agents in sandboxes, live over a WebSocket, resumable. */
export class Sessions {
  readonly #transport: Transport;
  readonly #ca: string | Uint8Array | undefined;

  constructor(transport: Transport, ca: string | Uint8Array | undefined) {
    this.#transport = transport;
    this.#ca = ca;
  }

  /**
   * Starts a session and resolves with its address and token. Safe to repeat: the call carries an idempotency key. The
   * service goes on with it after an abort or a timeout; the same call with the same `idempotencyKey` returns the result.
   */
  async create(request: CreateSessionRequest, options: CreateOptions = {}): Promise<SessionAccess> {
    return this.#transport.json({
      method: 'POST',
      path: PATH,
      headers: { 'idempotency-key': options.idempotencyKey ?? randomUUID() },
      json: request,
      repeatable: true,
      defaultTimeoutMs: START_TIMEOUT_MS,
      options,
    });
  }

  /**
   * Restarts a session in a new sandbox with its earlier conversation and files. A running session is stopped first.
   */
  async resume(
    request: string | ResumeSessionRequest,
    options?: CallOptions,
  ): Promise<ResumedSession> {
    return this.#transport.json({
      method: 'POST',
      path: `${PATH}/resume`,
      json: typeof request === 'string' ? { chat_session_id: request } : request,
      defaultTimeoutMs: START_TIMEOUT_MS,
      options,
    });
  }

  /** The account's sessions, newest first. */
  async list(query: ListSessionsQuery = {}, options?: CallOptions): Promise<ListSessionsResponse> {
    return this.#transport.json({ method: 'GET', path: PATH, query, options });
  }

  /** One session. */
  async get(id: string, options?: CallOptions): Promise<SessionRecord> {
    return this.#transport.json({ method: 'GET', path: pathOf(id), options });
  }

  /**
   * Ends a session; it can be resumed. Resolves when its sandbox is gone. With `erase`, also for a session that has ended,
   * everything that it keeps is erased; it cannot be resumed then.
   */
  async delete(id: string, options: DeleteSessionOptions = {}): Promise<DeleteSessionResponse> {
    return this.#transport.json({
      method: 'DELETE',
      path: pathOf(id),
      ...(options.erase ? { query: { erase: 'true' } } : {}),
      defaultTimeoutMs: DELETE_TIMEOUT_MS,
      options,
    });
  }

  /**
   * Attaches to a session, with the result of `create` or `resume`. Connects immediately, and reconnects whenever the
   * connection breaks. The loop over its frames throws permanent errors.
   */
  connect(access: SessionAddress, options: ConnectOptions = {}): SessionConnection {
    return new SessionConnection(access, options, {
      ca: this.#ca,
      traceparent: () => this.#transport.traceparent,
      hasEnded: async () => {
        const { status } = await this.get(access.chat_session_id, { timeoutMs: LOOK_TIMEOUT_MS });
        return status !== 'active';
      },
      ended: sessionEnded,
    });
  }
}

function pathOf(id: string): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}
