import { UsageHistoryQuery, UsageHistoryResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/usage/history`: the usage of each day of a time, the last 30 days by default. */
export const usageHistory: Route<'auth' | 'usage'> = (app, { auth, usage }) => {
  app.get(
    '/v1/usage/history',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'getUsageHistory',
        tags: ['Usage'],
        summary: 'Read the usage of each day',
        security: BY_API_KEY,
        querystring: UsageHistoryQuery,
        response: { 200: UsageHistoryResponse, ...authenticatedProblems('validation_failed') },
      },
    },
    (request) => usage.history(callerOf(request).tenantId, request.query),
  );
};
