import type { ServerResponse } from 'node:http';
import { ServiceError } from '@svc/contract';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { openDeadline } from '../concurrency/deadline.ts';
import { sleep } from '../concurrency/sleep.ts';
import { Wakeable } from '../concurrency/wakeable.ts';
import type { DrainTimes } from '../process/drain-times.ts';
import { upgradeOf } from '../websocket/upgrades.ts';
import { closeIdleConnections } from './graceful-close.ts';

/** The route by which load balancers tell whether to send requests to a server. */
const READINESS_ROUTE = '/readyz';

type Server = Pick<FastifyInstance, 'addHook'>;

/**
 * Ends the work of a server in order: first `/readyz` is 503 and responses carry `Connection: close`, so that callers
 * go elsewhere; then connections that nobody uses are closed, new work is refused with `shutting_down`, and the work in
 * progress may end. Requests that are not work are served until the server closes. WebSockets are never waited for: their
 * clients reconnect.
 */
export class RequestDrain {
  readonly #isWork: (request: FastifyRequest) => boolean;
  readonly #ended = new Wakeable();
  readonly #servers: Server[] = [];
  #stage: 'serving' | 'leaving' | 'refusing' = 'serving';
  #inProgress = 0;

  constructor(isWork: (request: FastifyRequest) => boolean) {
    this.#isWork = isWork;
  }

  /** Whether new work is refused. */
  get isRefusing(): boolean {
    return this.#stage === 'refusing';
  }

  /** Applies the drain to the routes that are added to the server from now on. */
  watch(app: Server): void {
    this.#servers.push(app);
    app.addHook('onRequest', (request, reply, done) => {
      const isReadiness = request.routeOptions.url === READINESS_ROUTE;
      const isWork = this.#isWork(request);
      if (isReadiness ? this.#stage !== 'serving' : isWork && this.isRefusing) {
        done(new ServiceError('shutting_down'));
        return;
      }
      if (isWork && upgradeOf(request.raw) === undefined) this.#begin(reply.raw);
      done();
    });
    app.addHook('onSend', (_request, reply, payload, done) => {
      if (this.#stage !== 'serving') reply.header('connection', 'close');
      done(null, payload);
    });
    // The head of a response may have been sent before the drain began.
    app.addHook('onResponse', (request, reply, done) => {
      const stays = reply.getHeader('connection') !== 'close';
      if (this.isRefusing && stays) request.raw.socket.destroySoon();
      done();
    });
  }

  /** Refuses new work from now on. */
  refuse(): void {
    this.#stage = 'refusing';
  }

  /**
   * Drains the server, and resolves when no work is in progress or the times are over, with the number of requests
   * still in progress. `signal` skips what is left of both times.
   */
  async run({ noticeMs, workMs }: DrainTimes, signal: AbortSignal): Promise<number> {
    if (this.#stage === 'serving') this.#stage = 'leaving';
    // Without a notice, nothing that arrives from now on is accepted.
    if (noticeMs > 0) {
      await sleep(noticeMs, signal);
      // Their callers would use them for requests that are refused from now on.
      for (const server of this.#servers) closeIdleConnections(server);
    }
    this.refuse();
    using deadline = openDeadline(signal, workMs);
    while (this.#inProgress > 0 && !deadline.signal.aborted) {
      await this.#ended.wait(workMs, deadline.signal);
    }
    return this.#inProgress;
  }

  #begin(response: ServerResponse): void {
    this.#inProgress += 1;
    response.once('close', () => {
      this.#inProgress -= 1;
      this.#ended.wake();
    });
  }
}
