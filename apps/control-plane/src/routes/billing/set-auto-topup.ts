import { AutoTopupConfig, UpdateAutoTopupResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `PUT /v1/billing/auto-topup`: replaces the settings. */
export const setAutoTopup: Route<'auth' | 'billing'> = (app, { auth, billing }) => {
  app.put(
    '/v1/billing/auto-topup',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'setAutoTopup',
        tags: ['Billing'],
        summary: 'Replace the settings of automatic top-ups',
        description:
          'A top-up charges the payment method that the last purchase saved, at most once in ten minutes. Three failures in a row disable it.',
        security: BY_ACCOUNT,
        body: AutoTopupConfig,
        response: { 200: UpdateAutoTopupResponse, ...authenticatedProblems(...BODY_PROBLEMS) },
      },
    },
    async (request) => {
      await billing.setAutoTopup(callerOf(request).tenantId, request.body);
      return { status: 'updated' as const };
    },
  );
};
