import { INTERNAL_PREFIX, WorkerEventsRequest, WorkerParams } from '@svc/contract';
import { requireWorker } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';
import { WORKER_BODY_BYTES } from './body-limits.ts';

/** `POST /internal/v1/workers/{worker_id}/events`: changes of sandboxes since the last report. */
export const workerEvents: Route<'componentAuth' | 'reconciler'> = (
  app,
  { componentAuth, reconciler },
) => {
  app.post(
    `${INTERNAL_PREFIX}/workers/:worker_id/events`,
    {
      onRequest: componentAuth.worker,
      bodyLimit: WORKER_BODY_BYTES,
      schema: { hide: true, params: WorkerParams, body: WorkerEventsRequest },
    },
    async (request, reply) => {
      requireWorker(request, request.params.worker_id);
      await reconciler.apply(request.params.worker_id, request.body.events);
      return reply.code(204).send();
    },
  );
};
