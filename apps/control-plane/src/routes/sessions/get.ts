import { SessionParams, SessionRecord } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/sessions/{id}` */
export const getSession: Route<'auth' | 'sessions'> = (app, { auth, sessions }) => {
  app.get(
    '/v1/sessions/:id',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'getSession',
        tags: ['Sessions'],
        summary: 'Read a session',
        security: BY_API_KEY,
        params: SessionParams,
        response: { 200: SessionRecord, ...authenticatedProblems('session_not_found') },
      },
    },
    (request) => sessions.get(callerOf(request), request.params.id),
  );
};
