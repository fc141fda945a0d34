import { DeleteSessionQuery, DeleteSessionResponse, SessionParams } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `DELETE /v1/sessions/{id}`: answers once the sandbox is destroyed, and the state saved or erased. */
export const deleteSession: Route<'auth' | 'sessions'> = (app, { auth, sessions }) => {
  app.delete(
    '/v1/sessions/:id',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'deleteSession',
        tags: ['Sessions'],
        summary: 'End a session',
        description:
          'Its state is kept, so that it can be resumed. With `erase`, which may also be sent later, everything that it keeps is erased instead; its record stays, with `erased_at`.',
        security: BY_API_KEY,
        params: SessionParams,
        querystring: DeleteSessionQuery,
        response: {
          200: DeleteSessionResponse,
          ...authenticatedProblems(
            'validation_failed',
            'session_not_found',
            'session_starting',
            'worker_unreachable',
            'worker_bad_response',
          ),
        },
      },
    },
    (request) => sessions.delete(callerOf(request), request.params.id, request.query),
  );
};
