import { SandboxParams, SandboxRecord } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import { toRecord } from '../../sandboxes/record.ts';
import type { Route } from '../../services.ts';
import { WORKER_PROBLEMS } from './problems.ts';

/** `POST /v1/sandboxes/{id}/pause` */
export const pauseSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.post(
    '/v1/sandboxes/:id/pause',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'pauseSandbox',
        tags: ['Sandboxes'],
        summary: 'Pause a sandbox',
        description: 'Keeps memory and disk, frees the CPU.',
        security: BY_API_KEY,
        params: SandboxParams,
        response: {
          200: SandboxRecord,
          ...authenticatedProblems(...WORKER_PROBLEMS, 'too_many_operations'),
        },
      },
    },
    async (request) =>
      toRecord(await sandboxes.operations.pause(callerOf(request), request.params.id)),
  );
};
