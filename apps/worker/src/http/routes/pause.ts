import { WorkerSandbox, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { toSandboxError } from '../../sandbox/microvm-errors.ts';
import type { WorkerContext } from '../context.ts';

/** `POST /sandboxes/:id/pause`: atomic and idempotent. */
export function pauseRoute(app: HttpServer, { registry }: WorkerContext): void {
  app.post(
    '/sandboxes/:id/pause',
    { schema: { params: WorkerSandboxParams, response: { 200: WorkerSandbox } } },
    async (request) => {
      const sandbox = registry.get(request.params.id);
      try {
        await sandbox.power.pause();
      } catch (error) {
        throw toSandboxError(error);
      }
      return sandbox.record();
    },
  );
}
