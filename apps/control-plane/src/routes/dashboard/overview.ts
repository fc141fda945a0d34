import { DashboardOverview } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/dashboard/overview`: the sums of the current month. */
export const dashboardOverview: Route<'auth' | 'usage'> = (app, { auth, usage }) => {
  app.get(
    '/v1/dashboard/overview',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'getDashboardOverview',
        tags: ['Dashboard'],
        summary: 'Read the sums of the current month',
        security: BY_ACCOUNT,
        response: { 200: DashboardOverview, ...authenticatedProblems() },
      },
    },
    (request) => usage.overview(callerOf(request).tenantId),
  );
};
