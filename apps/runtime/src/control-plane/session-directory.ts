import {
  type ErrorCode,
  INTERNAL_PREFIX,
  isErrorCode,
  Problem,
  SESSION_TOKEN_HEADER,
  ServiceError,
  SessionRoute,
} from '@svc/contract';
import { retry, withDeadline } from '@svc/service-kit/concurrency';
import { FailureLog } from '@svc/service-kit/logging';
import type { FastifyBaseLogger } from 'fastify';
import { Compile } from 'typebox/compile';
import type { Answer, ControlPlaneConnection } from './connection.ts';

const DEADLINE_MS = 5_000;
/** A lookup can be lost with a keep-alive connection that has just been closed, so it is retried once. */
const TRIES = 2;
const REFUSED =
  'the control plane refuses the identity of this runtime host: enrol it with a new token, or correct its clock';

/** What the control plane says about a client. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'unauthorized',
  'session_token_mismatch',
  'session_of_another_tenant',
]);

/** The session that a client wants to attach to, and its token. */
export interface SessionClient {
  readonly id: string;
  readonly token: string | undefined;
}

const route = Compile(SessionRoute);
const problem = Compile(Problem);

/** Looks up sessions at the control plane. Nothing is cached, since a session can end or move at any time. */
export class SessionDirectory {
  readonly #connection: ControlPlaneConnection;
  readonly #logger: FastifyBaseLogger;
  readonly #refusals = new FailureLog();

  constructor(connection: ControlPlaneConnection, logger: FastifyBaseLogger) {
    this.#connection = connection;
    this.#logger = logger;
  }

  /**
   * The owner and the worker of a session, if its client may attach.
   * @throws ServiceError `unauthorized` for a missing, invalid or expired token, and likewise for an unknown session;
   *   `session_token_mismatch` and `session_of_another_tenant` for a token of another session or account;
   *   `control_plane_unreachable`
   */
  async find(client: SessionClient, signal: AbortSignal): Promise<SessionRoute> {
    if (client.token === undefined) throw new ServiceError('unauthorized');
    const { status, text } = await this.#get(pathOf(client), signal, headersOf(client));
    const code = status === 200 ? undefined : codeOf(text);
    if (code !== undefined && REFUSALS.has(code)) throw new ServiceError(code);
    return this.#routeOf(status, text);
  }

  /**
   * Has a session started elsewhere if its worker, which cannot be reached, is lost. Resolves with its owner and its
   * worker then. Rejects when the control plane cannot be reached, or when the session could not be started.
   */
  async recover(client: SessionClient, signal: AbortSignal): Promise<SessionRoute> {
    const { status, text } = await this.#connection.send({
      method: 'POST',
      path: `${pathOf(client)}/recover`,
      headers: headersOf(client),
      name: 'POST /sessions/{id}/recover',
      isSlow: true,
      signal,
    });
    return this.#routeOf(status, text);
  }

  #routeOf(status: number, text: string): SessionRoute {
    const value = status === 200 ? parse(text) : undefined;
    if (route.Check(value)) return value;
    if (codeOf(text) === 'component_unauthorized') {
      this.#refusals.note(() => this.#logger.error(REFUSED));
    }
    throw unreachable(new Error(`the control plane answered ${status}`));
  }

  /**
   * Checks that lookups work. A control plane that is about to end answers them until then, so that its unreadiness is not
   * that of every runtime host. @throws ServiceError `control_plane_unreachable`
   */
  async check(signal: AbortSignal): Promise<void> {
    const { status, text } = await this.#get('/readyz', signal);
    if (status !== 200 && codeOf(text) !== 'shutting_down')
      throw unreachable(new Error(`the control plane answered ${status}`));
  }

  async #get(path: string, caller: AbortSignal, headers = {}): Promise<Answer> {
    const signal = withDeadline(caller, DEADLINE_MS);
    try {
      const call = { method: 'GET', path, name: 'GET /sessions/{id}', headers, signal } as const;
      return await retry(() => this.#connection.send(call), { attempts: TRIES, signal });
    } catch (error) {
      caller.throwIfAborted();
      throw unreachable(error);
    }
  }
}

function headersOf({ token }: SessionClient): Record<string, string> {
  return token === undefined ? {} : { [SESSION_TOKEN_HEADER]: token };
}

function pathOf({ id }: Pick<SessionClient, 'id'>): string {
  return `${INTERNAL_PREFIX}/sessions/${encodeURIComponent(id)}`;
}

/** The code of a problem document. */
function codeOf(text: string): ErrorCode | undefined {
  const value = parse(text);
  return problem.Check(value) && isErrorCode(value.code) ? value.code : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreachable(cause: unknown): ServiceError {
  return new ServiceError('control_plane_unreachable', undefined, { cause });
}
