import {
  DestroyQuery,
  END_REASONS,
  knownOr,
  WorkerSandbox,
  WorkerSandboxParams,
} from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `DELETE /sandboxes/:id`: works in every state, idempotent; continues even if the caller disconnects. */
export function destroyRoute(app: HttpServer, { registry }: WorkerContext): void {
  app.delete(
    '/sandboxes/:id',
    {
      schema: {
        params: WorkerSandboxParams,
        querystring: DestroyQuery,
        response: { 200: WorkerSandbox },
      },
    },
    async (request) => {
      const sandbox = registry.get(request.params.id);
      const { reason = 'deleted' } = request.query;
      await sandbox.end(knownOr(END_REASONS, reason, 'deleted'));
      return sandbox.record();
    },
  );
}
