import { ListBundlesResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/tenants/me/secrets`: names of bundles and of their keys, never a value. */
export const listSecretBundles: Route<'auth' | 'secretBundles'> = (
  app,
  { auth, secretBundles },
) => {
  app.get(
    '/v1/tenants/me/secrets',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'listSecretBundles',
        tags: ['Secrets'],
        summary: 'List secret bundles',
        security: BY_API_KEY,
        response: { 200: ListBundlesResponse, ...authenticatedProblems() },
      },
    },
    async (request) => ({ bundles: await secretBundles.list(callerOf(request).tenantId) }),
  );
};
