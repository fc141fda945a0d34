import { DailyUsageQuery, DailyUsageResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/dashboard/usage/daily`: the usage of each day from one to another. */
export const dailyUsage: Route<'auth' | 'usage'> = (app, { auth, usage }) => {
  app.get(
    '/v1/dashboard/usage/daily',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'getDailyUsage',
        tags: ['Dashboard'],
        summary: 'Read the usage of each day',
        security: BY_ACCOUNT,
        querystring: DailyUsageQuery,
        response: { 200: DailyUsageResponse, ...authenticatedProblems('validation_failed') },
      },
    },
    (request) => usage.daily(callerOf(request).tenantId, request.query),
  );
};
