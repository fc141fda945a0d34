import { CancelRequest, CancelResponse, ServiceError, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `POST /sandboxes/:id/cancel`: notifies the attached clients; destroys nothing. */
export function cancelRoute(app: HttpServer, { registry }: WorkerContext): void {
  app.post(
    '/sandboxes/:id/cancel',
    {
      schema: {
        params: WorkerSandboxParams,
        body: CancelRequest,
        response: { 200: CancelResponse },
      },
    },
    async (request) => {
      const sandbox = registry.get(request.params.id);
      if (sandbox.state !== 'running') throw new ServiceError('sandbox_not_running');
      const reason = request.body?.reason ?? 'user_request';
      const notified = await sandbox.cancel(reason);
      return { vm_id: sandbox.id, cancelled: notified > 0, reason };
    },
  );
}
