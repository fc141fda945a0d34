import { INTERNAL_PREFIX, SessionParams, SessionRoute } from '@svc/contract';
import type { Route } from '../../services.ts';

/** `GET /internal/v1/sessions/{id}`: for runtime hosts, whose a session is and where it runs. */
export const sessionRoute: Route = (app, { workerAuth, sessionReader }) => {
  app.get(
    `${INTERNAL_PREFIX}/sessions/:id`,
    {
      onRequest: workerAuth.hook,
      schema: { hide: true, params: SessionParams, response: { 200: SessionRoute } },
    },
    (request) => sessionReader.route(request.workerId, request.params.id),
  );
};
