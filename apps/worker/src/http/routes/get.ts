import { WorkerSandbox, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /sandboxes/:id` */
export function getRoute(app: HttpServer, { registry }: WorkerContext): void {
  app.get(
    '/sandboxes/:id',
    { schema: { params: WorkerSandboxParams, response: { 200: WorkerSandbox } } },
    async (request) => {
      const sandbox = registry.get(request.params.id);
      await sandbox.refreshCpuSeconds();
      return sandbox.record();
    },
  );
}
