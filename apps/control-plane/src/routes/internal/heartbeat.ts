import { HeartbeatRequest, HeartbeatResponse, INTERNAL_PREFIX, WorkerParams } from '@svc/contract';
import { requireWorker } from '../../auth/worker-authenticator.ts';
import type { Route } from '../../services.ts';
import { WORKER_BODY_BYTES } from './body-limits.ts';

/** `POST /internal/v1/workers/{worker_id}/heartbeat`: the capacity and sandboxes of a live worker. */
export const workerHeartbeat: Route<'workerAuth' | 'reconciler'> = (
  app,
  { workerAuth, reconciler },
) => {
  app.post(
    `${INTERNAL_PREFIX}/workers/:worker_id/heartbeat`,
    {
      onRequest: workerAuth.hook,
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
