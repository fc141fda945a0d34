import { INTERNAL_PREFIX, SESSION_TOKEN_HEADER, SessionParams, SessionRoute } from '@svc/contract';
import type { FastifyRequest } from 'fastify';
import type { Route } from '../../services.ts';

/**
 * `POST /internal/v1/sessions/{id}/recover`, for a runtime host that cannot reach the worker of a session: starts the
 * session elsewhere if that worker is lost. Owner and worker of the session then.
 */
export const recoverSession: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/recover`,
    {
      onRequest: componentAuth.runtime,
      schema: { hide: true, params: SessionParams, response: { 200: SessionRoute } },
    },
    async (request) => {
      const { id } = request.params;
      // Refuses a client that may not attach.
      await sessions.route(id, clientTokenOf(request));
      await sessions.recover(id);
      return sessions.route(id, clientTokenOf(request));
    },
  );
};

/** `GET /internal/v1/sessions/{id}`: owner and worker of a session, for the runtime host of a client that may attach. */
export const sessionRoute: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.get(
    `${INTERNAL_PREFIX}/sessions/:id`,
    {
      onRequest: componentAuth.runtime,
      schema: { hide: true, params: SessionParams, response: { 200: SessionRoute } },
    },
    (request) => sessions.route(request.params.id, clientTokenOf(request)),
  );
};

function clientTokenOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const token = headers[SESSION_TOKEN_HEADER];
  return typeof token === 'string' ? token : undefined;
}
