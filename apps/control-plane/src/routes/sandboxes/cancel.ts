import { CancelRequest, CancelResponse, SandboxParams } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { USE_PROBLEMS } from './problems.ts';

/** `POST /v1/sandboxes/{id}/cancel`: asks the clients of a sandbox to stop; the sandbox keeps running. */
export const cancelSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.post(
    '/v1/sandboxes/:id/cancel',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'cancelSandbox',
        tags: ['Sandboxes'],
        summary: 'Broadcast a cooperative cancel',
        security: BY_API_KEY,
        params: SandboxParams,
        body: CancelRequest,
        response: {
          200: CancelResponse,
          ...authenticatedProblems(...USE_PROBLEMS, 'unknown_cancel_reason', 'too_many_operations'),
        },
      },
    },
    (request, reply) => {
      const reason = request.body?.reason ?? 'user_request';
      return sandboxes.operations.cancel(
        callerOf(request),
        request.params.id,
        reason,
        clientGoneSignal(reply),
      );
    },
  );
};
