import {
  INTERNAL_PREFIX,
  ReservedFrames,
  ReserveFramesRequest,
  SessionParams,
} from '@svc/contract';
import { workerOf } from '../../auth/worker-authenticator.ts';
import type { Route } from '../../services.ts';

/** `POST /internal/v1/sessions/{id}/frame-numbers`: reserves numbers of frames, for the worker that runs the session. */
export const sessionFrameNumbers: Route<'workerAuth' | 'sessions'> = (
  app,
  { workerAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/frame-numbers`,
    {
      onRequest: workerAuth.hook,
      schema: {
        hide: true,
        params: SessionParams,
        body: ReserveFramesRequest,
        response: { 200: ReservedFrames },
      },
    },
    (request) => sessions.history.reserve(workerOf(request), request.params.id, request.body),
  );
};
