import type { FastifyReply, FastifyRequest } from 'fastify';
import { LogController } from 'fastify';

const VERBOSE: ReadonlySet<string> = new Set(['trace', 'debug']);

/** What else the access log says of a request. */
export type AccessFields = (
  request: FastifyRequest,
) => Readonly<Record<string, string | undefined>>;

/**
 * Fastify's own log lines: one line per request. Without `access`, at debug level only, so that the usual level costs
 * nothing; with it, at info level. A line has the pattern of the route, never the URL, which may hold a token. The error
 * handler logs failures.
 */
export class RequestLog extends LogController {
  readonly #access: AccessFields | undefined;

  constructor(access?: AccessFields) {
    super({ requestIdLogLabel: 'request_id' });
    this.#access = access;
  }

  override incomingRequest(): void {
    // The line at the end of the request contains the same fields.
  }

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    if (this.#access === undefined && !VERBOSE.has(reply.log.level)) return;
    const line = {
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      ...(error ? { err: error } : {}),
    };
    if (this.#access === undefined) reply.log.debug(line, 'request');
    else reply.log.info({ ...line, client: request.ip, ...this.#access(request) }, 'request');
  }
}
