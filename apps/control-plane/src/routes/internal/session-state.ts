import { INTERNAL_PREFIX, SessionParams, SessionState } from '@svc/contract';
import { workerOf } from '../../auth/worker-authenticator.ts';
import type { Route } from '../../services.ts';

/** `GET /internal/v1/sessions/{id}/state`: the state that a session continues from, for the worker of its sandbox. */
export const sessionState: Route<'workerAuth' | 'sessions'> = (app, { workerAuth, sessions }) => {
  app.get(
    `${INTERNAL_PREFIX}/sessions/:id/state`,
    {
      onRequest: workerAuth.hook,
      schema: { hide: true, params: SessionParams, response: { 200: SessionState } },
    },
    (request) => sessions.history.state(workerOf(request), request.params.id),
  );
};
