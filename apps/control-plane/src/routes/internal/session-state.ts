import { INTERNAL_PREFIX, SessionParams, SessionState } from '@svc/contract';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';

/** `GET /internal/v1/sessions/{id}/state`: the state that a session continues from, for the worker of its sandbox. */
export const sessionState: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.get(
    `${INTERNAL_PREFIX}/sessions/:id/state`,
    {
      onRequest: componentAuth.workerInTurn,
      schema: { hide: true, params: SessionParams, response: { 200: SessionState } },
    },
    (request) => sessions.history.state(workerOf(request), request.params.id),
  );
};
