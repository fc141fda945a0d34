import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LogController } from 'fastify';
import type { CallerFields, RequestFailures } from './request-failures.ts';
import { scopeOf } from './request-scopes.ts';

const VERBOSE: ReadonlySet<string> = new Set(['trace', 'debug']);

/** What was counted on a connection when its last request ended. */
interface Counted {
  readonly received: number;
  readonly sent: number;
}

/**
 * Fastify's own log lines: one line per request. Without `access`, at debug level only, so that the usual level costs
 * nothing; with it, at info level. A line has the pattern of the route, never the URL, which may hold a token. The error
 * handler logs failures.
 */
export class RequestLog extends LogController {
  readonly #failures: RequestFailures;
  readonly #access: CallerFields | undefined;
  readonly #clients = new WeakMap<FastifyRequest, string>();
  readonly #connections = new WeakMap<Socket, Counted>();

  /** @param access who sent a request; undefined for a log without a line for each request at info level */
  constructor(failures: RequestFailures, access?: CallerFields) {
    super({ requestIdLogLabel: 'request_id' });
    this.#failures = failures;
    this.#access = access;
  }

  /** Writes nothing: the line at the end of the request says everything. */
  override incomingRequest(request: FastifyRequest): void {
    // The connection of a client that has left has no address.
    if (this.#access !== undefined) this.#clients.set(request, request.ip);
  }

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    this.#write(request, reply, {
      status: reply.statusCode,
      ...(error ? { err: error } : {}),
    });
  }

  /** The line of a response that broke off. Of one that its client broke off, {@link requestAborted} writes a line. */
  override streamError(error: Error & { readonly code?: string }, request: FastifyRequest): void {
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    this.#failures.note(request, 'broken off', {
      level: 'warn',
      message: 'a response broke off',
      fields: { err: error },
    });
  }

  /** The line of a request whose client left before it had the response. */
  requestAborted(request: FastifyRequest, reply: FastifyReply): void {
    const status = reply.raw.headersSent ? reply.statusCode : undefined;
    this.#write(request, reply, { status, aborted: true });
  }

  /** The line of a request whose connection has another protocol from now on. */
  requestUpgraded(request: FastifyRequest, reply: FastifyReply): void {
    this.#write(request, reply, { status: 101 });
  }

  #write(request: FastifyRequest, reply: FastifyReply, outcome: Readonly<Record<string, unknown>>) {
    if (this.#access === undefined && !VERBOSE.has(reply.log.level)) return;
    const traceId = scopeOf(request)?.traceId;
    const line = {
      method: request.method,
      route: request.routeOptions.url,
      ...outcome,
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      ...(traceId === undefined ? {} : { trace_id: traceId }),
    };
    if (this.#access === undefined) reply.log.debug(line, 'request');
    else {
      const bytes = this.#bytesOf(request.raw.socket);
      const client = this.#clients.get(request);
      reply.log.info({ ...line, ...bytes, client, ...this.#access(request) }, 'request');
    }
  }

  /** What went over the connection since its last request, heads included. */
  #bytesOf(socket: Socket): Readonly<Record<string, number>> {
    const { bytesRead, bytesWritten } = socket;
    // Requests that a test injects have no connection.
    if (typeof bytesRead !== 'number' || typeof bytesWritten !== 'number') return {};
    const before = this.#connections.get(socket) ?? { received: 0, sent: 0 };
    this.#connections.set(socket, { received: bytesRead, sent: bytesWritten });
    return { received_bytes: bytesRead - before.received, sent_bytes: bytesWritten - before.sent };
  }
}
