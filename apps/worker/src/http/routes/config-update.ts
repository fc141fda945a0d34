import { ConfigUpdate, ServiceError, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { callerSignal } from '../caller-signal.ts';
import type { WorkerContext } from '../context.ts';

/**
 * `POST /sandboxes/:id/config-update`: fetches and applies the new values after a rotation of a bundle. 409 until the
 * agent has been started, since it may have been configured with earlier values.
 */
export function configUpdateRoute(app: HttpServer, context: WorkerContext): void {
  app.post(
    '/sandboxes/:id/config-update',
    { schema: { params: WorkerSandboxParams, body: ConfigUpdate } },
    async (request, reply) => {
      const sandbox = context.registry.get(request.params.id);
      sandbox.assignedVm();
      if (sandbox.agent === undefined) throw new ServiceError('sandbox_not_running');
      await sandbox.agent.updateConfig(request.body, callerSignal(reply, context));
      return reply.code(204).send();
    },
  );
}
