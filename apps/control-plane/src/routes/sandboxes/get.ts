import { SandboxParams, SandboxRecord } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/sandboxes/{id}` */
export const getSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.get(
    '/v1/sandboxes/:id',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'getSandbox',
        tags: ['Sandboxes'],
        summary: 'Read a sandbox',
        security: BY_API_KEY,
        params: SandboxParams,
        response: { 200: SandboxRecord, ...authenticatedProblems('sandbox_not_found') },
      },
    },
    (request) => sandboxes.get(callerOf(request), request.params.id),
  );
};
