import { ListSessionsQuery, ListSessionsResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/sessions`: newest first. */
export const listSessions: Route<'auth' | 'sessions'> = (app, { auth, sessions }) => {
  app.get(
    '/v1/sessions',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'listSessions',
        tags: ['Sessions'],
        summary: "List the caller's sessions",
        security: BY_API_KEY,
        querystring: ListSessionsQuery,
        response: { 200: ListSessionsResponse, ...authenticatedProblems('validation_failed') },
      },
    },
    (request) => sessions.list(callerOf(request), request.query),
  );
};
