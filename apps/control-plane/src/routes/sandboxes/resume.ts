import { SandboxParams, SandboxRecord } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import { toRecord } from '../../sandboxes/record.ts';
import type { Route } from '../../services.ts';
import { WORKER_PROBLEMS } from './problems.ts';

/** `POST /v1/sandboxes/{id}/resume` */
export const resumeSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.post(
    '/v1/sandboxes/:id/resume',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'resumeSandbox',
        tags: ['Sandboxes'],
        summary: 'Resume a paused sandbox',
        description: 'Goes on where it was paused.',
        security: BY_API_KEY,
        params: SandboxParams,
        response: {
          200: SandboxRecord,
          ...authenticatedProblems(...WORKER_PROBLEMS, 'too_many_operations'),
        },
      },
    },
    async (request) =>
      toRecord(await sandboxes.operations.resume(callerOf(request), request.params.id)),
  );
};
