import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /metrics`: Prometheus text; only counts, without tenants. */
export function metricsRoute(app: HttpServer, { metrics }: WorkerContext): void {
  app.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.metrics()),
  );
}
