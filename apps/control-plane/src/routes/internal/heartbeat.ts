import { HeartbeatRequest, HeartbeatResponse, INTERNAL_PREFIX, WorkerParams } from '@svc/contract';
import { requireWorker } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';
import { WORKER_BODY_BYTES } from './body-limits.ts';

/** `POST /internal/v1/workers/{worker_id}/heartbeat`: the capacity and sandboxes of a live worker. */
export const workerHeartbeat: Route<'componentAuth' | 'reconciler'> = (
  app,
  { componentAuth, reconciler },
) => {
  app.post(
    `${INTERNAL_PREFIX}/workers/:worker_id/heartbeat`,
    {
      onRequest: componentAuth.heartbeat,
      bodyLimit: WORKER_BODY_BYTES,
      schema: {
        hide: true,
        params: WorkerParams,
        body: HeartbeatRequest,
        response: { 200: HeartbeatResponse },
      },
    },
    async (request) => {
      requireWorker(request, request.params.worker_id);
      return reconciler.heartbeat(request.params.worker_id, request.body);
    },
  );
};
