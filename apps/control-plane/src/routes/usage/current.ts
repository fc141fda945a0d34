import { CurrentUsage } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/usage`: the usage of the current month, and the credit. */
export const currentUsage: Route<'auth' | 'usage'> = (app, { auth, usage }) => {
  app.get(
    '/v1/usage',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'getUsage',
        tags: ['Usage'],
        summary: 'Read the usage of the current month',
        security: BY_API_KEY,
        response: { 200: CurrentUsage, ...authenticatedProblems() },
      },
    },
    (request) => usage.current(callerOf(request).tenantId),
  );
};
