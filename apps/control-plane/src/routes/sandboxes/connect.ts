import { SandboxAccess, SandboxParams } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/sandboxes/{id}/connect`: the address and token of the WebSocket of the sandbox's agent. */
export const connectSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.post(
    '/v1/sandboxes/:id/connect',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'connectSandbox',
        tags: ['Sandboxes'],
        summary: 'Connect to the agent of a sandbox',
        description:
          'Opens the WebSocket of the agent, with the frames of a session: an agent without `task` takes tasks from it, ' +
          'any other can be watched.',
        security: BY_API_KEY,
        params: SandboxParams,
        response: {
          200: SandboxAccess,
          ...authenticatedProblems(
            'sandbox_not_found',
            'sandbox_not_running',
            'sandbox_has_no_agent',
            'agent_ended',
          ),
        },
      },
    },
    (request) => sandboxes.connect(callerOf(request), request.params.id),
  );
};
