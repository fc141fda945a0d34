import { INTERNAL_PREFIX, RegisterWorkerRequest, RegisterWorkerResponse } from '@svc/contract';
import { requireWorker } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';
import { checkWorkerAddress } from '../../workers/worker-address.ts';
import { WORKER_BODY_BYTES } from './body-limits.ts';

/** `POST /internal/v1/workers/register`: a worker has started. */
export const registerWorker: Route<'componentAuth' | 'reconciler'> = (
  app,
  { componentAuth, reconciler },
) => {
  app.post(
    `${INTERNAL_PREFIX}/workers/register`,
    {
      onRequest: componentAuth.worker,
      bodyLimit: WORKER_BODY_BYTES,
      schema: {
        hide: true,
        body: RegisterWorkerRequest,
        response: { 200: RegisterWorkerResponse },
      },
    },
    async (request) => {
      requireWorker(request, request.body.worker_id);
      checkWorkerAddress(request.body);
      return reconciler.register(request.body);
    },
  );
};
