import { PlaceSandboxRequest, WorkerSandbox } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { callerSignal } from '../caller-signal.ts';
import type { WorkerContext } from '../context.ts';

/** `POST /sandboxes`: idempotent by id and generation; rolled back when the caller disconnects. */
export function createRoute(app: HttpServer, context: WorkerContext): void {
  app.post(
    '/sandboxes',
    { schema: { body: PlaceSandboxRequest, response: { 201: WorkerSandbox } } },
    async (request, reply) => {
      const sandbox = await context.creator.create(request.body, callerSignal(reply, context));
      return reply.code(201).send(sandbox.record());
    },
  );
}
