import { AutoTopupConfig } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/billing/auto-topup`: when and by how much the account is topped up by itself. */
export const getAutoTopup: Route<'auth' | 'billing'> = (app, { auth, billing }) => {
  app.get(
    '/v1/billing/auto-topup',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'getAutoTopup',
        tags: ['Billing'],
        summary: 'Read the settings of automatic top-ups',
        security: BY_ACCOUNT,
        response: { 200: AutoTopupConfig, ...authenticatedProblems() },
      },
    },
    (request) => billing.autoTopup(callerOf(request).tenantId),
  );
};
