import { WorkerSandbox, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { toSandboxError } from '../../sandbox/microvm-errors.ts';
import type { WorkerContext } from '../context.ts';

/** `POST /sandboxes/:id/resume`: atomic and idempotent. */
export function resumeRoute(app: HttpServer, { registry }: WorkerContext): void {
  app.post(
    '/sandboxes/:id/resume',
    { schema: { params: WorkerSandboxParams, response: { 200: WorkerSandbox } } },
    async (request) => {
      const sandbox = registry.get(request.params.id);
      try {
        await sandbox.power.resume();
      } catch (error) {
        throw toSandboxError(error);
      }
      return sandbox.record();
    },
  );
}
