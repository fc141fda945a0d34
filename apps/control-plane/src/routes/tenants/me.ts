import { TenantRecord } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY_OR_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/tenants/me` */
export const getOwnTenant: Route<'auth' | 'tenants'> = (app, { auth, tenants }) => {
  app.get(
    '/v1/tenants/me',
    {
      onRequest: auth.apiKeyOrAccount,
      schema: {
        operationId: 'getOwnTenant',
        tags: ['Tenants'],
        summary: "Read the caller's account",
        security: BY_API_KEY_OR_ACCOUNT,
        response: { 200: TenantRecord, ...authenticatedProblems() },
      },
    },
    (request) => tenants.describe(callerOf(request).tenantId),
  );
};
