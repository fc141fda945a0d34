import { TransactionsQuery, TransactionsResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/billing/transactions`: the entries of the account's ledger, newest first. */
export const listTransactions: Route<'auth' | 'billing'> = (app, { auth, billing }) => {
  app.get(
    '/v1/billing/transactions',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'listTransactions',
        tags: ['Billing'],
        summary: 'List the transactions of the account',
        security: BY_ACCOUNT,
        querystring: TransactionsQuery,
        response: { 200: TransactionsResponse, ...authenticatedProblems('validation_failed') },
      },
    },
    (request) => billing.transactions(callerOf(request).tenantId, request.query),
  );
};
