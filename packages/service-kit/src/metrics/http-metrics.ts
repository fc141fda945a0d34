import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Histogram, type Registry } from 'prom-client';
import { toServiceError } from '../http/framework-errors.ts';
import type { HttpServer } from '../http/server.ts';

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * Times every request of a server by method, route pattern and status, and counts its problems by code. Register before
 * the routes.
 */
export function registerHttpMetrics(app: HttpServer, registry: Registry, server: string): void {
  const duration = new Histogram({
    name: `svc_${server}_http_request_duration_seconds`,
    help: 'Time from the arrival of a request to the end of its response.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers: [registry],
  });
  app.addHook('onResponse', (request: FastifyRequest, reply: FastifyReply, done) => {
    duration.observe(
      {
        method: request.method,
        route: request.routeOptions.url ?? 'none',
        status: reply.statusCode,
      },
      reply.elapsedTime / 1000,
    );
    done();
  });
  const problems = new Counter({
    name: `svc_${server}_problems_total`,
    help: 'Requests that were answered with a problem, by its code.',
    labelNames: ['code'],
    registers: [registry],
  });
  app.addHook('onError', (_request, _reply, error, done) => {
    problems.inc({ code: toServiceError(error).code });
    done();
  });
}
