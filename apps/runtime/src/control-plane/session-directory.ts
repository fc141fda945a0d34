import {
  CONTROL_PLANE_NAME,
  INTERNAL_PREFIX,
  Problem,
  ServiceError,
  SessionRoute,
} from '@svc/contract';
import type { TokenMinter } from '@svc/service-kit';
import { retry, untilAborted, withDeadline } from '@svc/service-kit/concurrency';
import { callHeaders, inSpan } from '@svc/service-kit/tracing';
import type { FastifyBaseLogger } from 'fastify';
import { Compile } from 'typebox/compile';
import { Agent, request } from 'undici';
import type { ControlPlaneAddress } from '../options.ts';

const DEADLINE_MS = 5_000;
const CONNECT_MS = 2_000;
const CONNECTIONS = 32;
/** Recoveries take long. They have their own connections, so that those of a lost worker do not delay lookups. */
const RECOVERIES = 16;
/** A lookup can be lost with a keep-alive connection that has just been closed, so it is retried once. */
const TRIES = 2;

const route = Compile(SessionRoute);
const problem = Compile(Problem);

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Looks up sessions at the control plane. Nothing is cached, since a session can end or move at any time. */
export class SessionDirectory {
  readonly #mint: TokenMinter;
  readonly #logger: FastifyBaseLogger;
  readonly #open: Promise<{ url: string; lookups: Agent; recoveries: Agent }>;
  #agents: Agent[] = [];

  constructor(
    controlPlane: ControlPlaneAddress | Promise<ControlPlaneAddress>,
    mint: TokenMinter,
    logger: FastifyBaseLogger,
  ) {
    this.#mint = mint;
    this.#logger = logger;
    this.#open = Promise.resolve(controlPlane).then(({ url, ca }) => {
      const connect = { timeout: CONNECT_MS, ...(ca === undefined ? {} : { ca }) };
      const lookups = new Agent({ connections: CONNECTIONS, connect });
      const recoveries = new Agent({ connections: RECOVERIES, connect });
      this.#agents = [lookups, recoveries];
      return { url, lookups, recoveries };
    });
    // Each lookup reports a failure; until then it must not count as unhandled.
    this.#open.catch(() => undefined);
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
    const { status, text } = await this.#send('POST', `${pathOf(id)}/recover`, signal);
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

  async close(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.destroy()));
  }

  async #get(path: string, caller: AbortSignal): Promise<Answer> {
    const signal = withDeadline(caller, DEADLINE_MS);
    try {
      return await retry(() => this.#send('GET', path, signal), { attempts: TRIES, signal });
    } catch (error) {
      caller.throwIfAborted();
      throw unreachable(error);
    }
  }

  async #send(method: 'GET' | 'POST', path: string, signal: AbortSignal): Promise<Answer> {
    const { url, lookups, recoveries } = await untilAborted(this.#open, signal);
    const call = method === 'GET' ? 'GET /sessions/{id}' : 'POST /sessions/{id}/recover';
    return inSpan({ name: `control plane ${call}`, kind: 'client' }, async (span) => {
      const { statusCode, body } = await request(new URL(path, url), {
        method,
        dispatcher: method === 'GET' ? lookups : recoveries,
        headers: {
          ...callHeaders(),
          authorization: `Bearer ${await this.#mint(CONTROL_PLANE_NAME)}`,
        },
        signal,
      });
      span?.set({ 'http.response.status_code': statusCode });
      return { status: statusCode, text: await body.text() };
    });
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
