import { DeleteSandboxResponse, SandboxParams } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `DELETE /v1/sandboxes/{id}`: answers once the teardown is complete. */
export const deleteSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.delete(
    '/v1/sandboxes/:id',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'deleteSandbox',
        tags: ['Sandboxes'],
        summary: 'Destroy a sandbox',
        security: BY_API_KEY,
        params: SandboxParams,
        response: {
          200: DeleteSandboxResponse,
          ...authenticatedProblems(
            'sandbox_not_found',
            'worker_unreachable',
            'worker_bad_response',
          ),
        },
      },
    },
    (request) => sandboxes.delete(callerOf(request), request.params.id),
  );
};
