import {
  INTERNAL_PREFIX,
  RenewLeaseRequest,
  RenewLeaseResponse,
  WorkerParams,
} from '@svc/contract';
import { requireWorker } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';
import { WORKER_BODY_BYTES } from './body-limits.ts';

/** `POST /internal/v1/workers/{worker_id}/lease`: what has changed at a live worker since its last report. */
export const renewLease: Route<'componentAuth' | 'reconciler'> = (
  app,
  { componentAuth, reconciler },
) => {
  app.post(
    `${INTERNAL_PREFIX}/workers/:worker_id/lease`,
    {
      onRequest: componentAuth.heartbeat,
      bodyLimit: WORKER_BODY_BYTES,
      schema: {
        hide: true,
        params: WorkerParams,
        body: RenewLeaseRequest,
        response: { 200: RenewLeaseResponse },
      },
    },
    async (request) => {
      requireWorker(request, request.params.worker_id);
      return reconciler.renewLease(request.params.worker_id, request.body);
    },
  );
};
