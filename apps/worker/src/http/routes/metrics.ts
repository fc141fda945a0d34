import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /metrics`: Prometheus text; counts only, nothing of any tenant. */
export function metricsRoute(app: HttpServer, { metrics }: WorkerContext): void {
  app.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.metrics()),
  );
}
