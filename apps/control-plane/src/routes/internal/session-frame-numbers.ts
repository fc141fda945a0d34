import {
  INTERNAL_PREFIX,
  ReservedFrames,
  ReserveFramesRequest,
  SessionParams,
} from '@svc/contract';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';

/** `POST /internal/v1/sessions/{id}/frame-numbers`: reserves numbers of frames, for the worker that runs the session. */
export const sessionFrameNumbers: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/frame-numbers`,
    {
      onRequest: componentAuth.worker,
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
