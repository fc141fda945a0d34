import { BalanceResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/billing/balance`: the credit of the account. */
export const getBalance: Route<'auth' | 'billing'> = (app, { auth, billing }) => {
  app.get(
    '/v1/billing/balance',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'getBalance',
        tags: ['Billing'],
        summary: 'Read the credit balance',
        security: BY_ACCOUNT,
        response: { 200: BalanceResponse, ...authenticatedProblems() },
      },
    },
    (request) => billing.balance(callerOf(request).tenantId),
  );
};
