import type { FastifyReply, FastifyRequest } from 'fastify';
import { LogController } from 'fastify';

const VERBOSE: ReadonlySet<string> = new Set(['trace', 'debug']);

/**
 * Fastify's own log lines: one line per request, at debug level only, so that the usual level costs nothing. The
 * error handler logs failures.
 */
export class RequestLog extends LogController {
  constructor() {
    super({ requestIdLogLabel: 'request_id' });
  }

  override incomingRequest(): void {
    // The line at the end of the request contains the same fields.
  }

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    if (!VERBOSE.has(reply.log.level)) return;
    reply.log.debug(
      {
        method: request.method,
        route: request.routeOptions.url,
        status: reply.statusCode,
        duration_ms: Math.round(reply.elapsedTime * 10) / 10,
        ...(error ? { err: error } : {}),
      },
      'request',
    );
  }
}
