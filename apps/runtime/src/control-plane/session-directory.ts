import { INTERNAL_PREFIX, Problem, ServiceError, SessionRoute } from '@svc/contract';
import { retry, withDeadline } from '@svc/service-kit/concurrency';
import type { FastifyBaseLogger } from 'fastify';
import { Compile } from 'typebox/compile';
import type { Answer, ControlPlaneConnection } from './connection.ts';

const DEADLINE_MS = 5_000;
/** A lookup can be lost with a keep-alive connection that has just been closed, so it is retried once. */
const TRIES = 2;

const route = Compile(SessionRoute);
const problem = Compile(Problem);

/** Looks up sessions at the control plane. Nothing is cached, since a session can end or move at any time. */
export class SessionDirectory {
  readonly #connection: ControlPlaneConnection;
  readonly #logger: FastifyBaseLogger;

  constructor(connection: ControlPlaneConnection, logger: FastifyBaseLogger) {
    this.#connection = connection;
    this.#logger = logger;
  }

  /**
   * The owner and the worker of a session; undefined when it does not exist.
   * @throws ServiceError `control_plane_unreachable`
   */
  async find(id: string, signal: AbortSignal): Promise<SessionRoute | undefined> {
    const { status, text } = await this.#get(pathOf(id), signal);
    if (status === 404) return undefined;
    return this.#routeOf(status, text);
  }

  /**
   * Has a session started elsewhere if its worker, which cannot be reached, is lost. Resolves with its owner and its
   * worker then. Rejects when the control plane cannot be reached, or when the session could not be started.
   */
  async recover(id: string, signal: AbortSignal): Promise<SessionRoute> {
    const { status, text } = await this.#connection.send({
      method: 'POST',
      path: `${pathOf(id)}/recover`,
      name: 'POST /sessions/{id}/recover',
      isSlow: true,
      signal,
    });
    return this.#routeOf(status, text);
  }

  #routeOf(status: number, text: string): SessionRoute {
    const value = status === 200 ? parse(text) : undefined;
    if (route.Check(value)) return value;
    if (status === 401) {
      this.#logger.error('the control plane rejected the token of this runtime host');
    }
    throw unreachable(new Error(`the control plane answered ${status}`));
  }

  /**
   * Checks that lookups work. A control plane that is about to end answers them until then, so that its unreadiness is not
   * that of every runtime host. @throws ServiceError `control_plane_unreachable`
   */
  async check(signal: AbortSignal): Promise<void> {
    const { status, text } = await this.#get('/readyz', signal);
    if (status !== 200 && !isShuttingDown(text))
      throw unreachable(new Error(`the control plane answered ${status}`));
  }

  async #get(path: string, caller: AbortSignal): Promise<Answer> {
    const signal = withDeadline(caller, DEADLINE_MS);
    try {
      const call = { method: 'GET', path, name: 'GET /sessions/{id}', signal } as const;
      return await retry(() => this.#connection.send(call), { attempts: TRIES, signal });
    } catch (error) {
      caller.throwIfAborted();
      throw unreachable(error);
    }
  }
}

function pathOf(id: string): string {
  return `${INTERNAL_PREFIX}/sessions/${encodeURIComponent(id)}`;
}

function isShuttingDown(text: string): boolean {
  const value = parse(text);
  return problem.Check(value) && value.code === 'shutting_down';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreachable(cause: unknown): ServiceError {
  return new ServiceError('control_plane_unreachable', undefined, {
    cause,
    headers: { 'retry-after': '5' },
  });
}
