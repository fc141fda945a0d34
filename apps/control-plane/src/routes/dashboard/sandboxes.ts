import { DashboardSandboxesQuery, DashboardSandboxesResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/dashboard/sandboxes`: sandboxes with what they used, newest first. */
export const dashboardSandboxes: Route<'auth' | 'usage'> = (app, { auth, usage }) => {
  app.get(
    '/v1/dashboard/sandboxes',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'listDashboardSandboxes',
        tags: ['Dashboard'],
        summary: 'List sandboxes with their usage',
        security: BY_ACCOUNT,
        querystring: DashboardSandboxesQuery,
        response: {
          200: DashboardSandboxesResponse,
          ...authenticatedProblems('validation_failed'),
        },
      },
    },
    (request) => usage.sandboxes(callerOf(request).tenantId, request.query),
  );
};
