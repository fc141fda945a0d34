import { WorkerHealth } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /health` */
export function healthRoute(app: HttpServer, { workerId, version }: WorkerContext): void {
  app.get('/health', { schema: { response: { 200: WorkerHealth } } }, async () => ({
    status: 'ok' as const,
    worker_id: workerId,
    version,
  }));
}
