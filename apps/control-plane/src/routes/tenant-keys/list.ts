import { ListTenantKeysResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/tenants/me/api-keys`: the keys of the tenant, including the last revoked ones. */
export const listTenantKeys: Route<'auth' | 'apiKeys'> = (app, { auth, apiKeys }) => {
  app.get(
    '/v1/tenants/me/api-keys',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'listTenantKeys',
        tags: ['Tenants'],
        summary: "List the tenant's API keys",
        security: BY_API_KEY,
        response: { 200: ListTenantKeysResponse, ...authenticatedProblems() },
      },
    },
    async (request) => ({ keys: await apiKeys.list(callerOf(request).tenantId) }),
  );
};
