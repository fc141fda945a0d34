import { INTERNAL_PREFIX, SessionParams, SessionRoute } from '@svc/contract';
import type { Route } from '../../services.ts';

/** `GET /internal/v1/sessions/{id}`: owner and worker of a session, for runtime hosts. */
export const sessionRoute: Route<'workerAuth' | 'sessions'> = (app, { workerAuth, sessions }) => {
  app.get(
    `${INTERNAL_PREFIX}/sessions/:id`,
    {
      onRequest: workerAuth.hook,
      schema: { hide: true, params: SessionParams, response: { 200: SessionRoute } },
    },
    (request) => sessions.route(request.workerId, request.params.id),
  );
};
