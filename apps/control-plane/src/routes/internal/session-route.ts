import { INTERNAL_PREFIX, SessionParams, SessionRoute } from '@svc/contract';
import type { Route } from '../../services.ts';

/**
 * `POST /internal/v1/sessions/{id}/recover`, for a runtime host that cannot reach the worker of a session: starts the
 * session elsewhere if that worker is lost. Owner and worker of the session then.
 */
export const recoverSession: Route<'workerAuth' | 'sessions'> = (app, { workerAuth, sessions }) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/recover`,
    {
      onRequest: workerAuth.hook,
      schema: { hide: true, params: SessionParams, response: { 200: SessionRoute } },
    },
    async ({ workerId, params: { id } }) => {
      // Refuses whoever is no runtime host.
      await sessions.route(workerId, id);
      await sessions.recover(id);
      return sessions.route(workerId, id);
    },
  );
};

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
