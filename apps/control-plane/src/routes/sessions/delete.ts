import { DeleteSessionResponse, SessionParams } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `DELETE /v1/sessions/{id}`: answers once its sandbox is gone and its state saved. */
export const deleteSession: Route = (app, { auth, sessionStopper }) => {
  app.delete(
    '/v1/sessions/:id',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'deleteSession',
        tags: ['Sessions'],
        summary: 'End a session',
        description: 'Its state is kept: it can be resumed.',
        security: BY_API_KEY,
        params: SessionParams,
        response: {
          200: DeleteSessionResponse,
          ...authenticatedProblems(
            'session_not_found',
            'session_starting',
            'worker_unreachable',
            'worker_bad_response',
          ),
        },
      },
    },
    (request) => sessionStopper.delete(callerOf(request), request.params.id),
  );
};
