import { ListApiKeysResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/api-keys`: the keys of the account, including the last revoked ones. */
export const listApiKeys: Route<'auth' | 'apiKeys'> = (app, { auth, apiKeys }) => {
  app.get(
    '/v1/api-keys',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'listApiKeys',
        tags: ['API keys'],
        summary: "List the account's API keys",
        security: BY_ACCOUNT,
        response: { 200: ListApiKeysResponse, ...authenticatedProblems() },
      },
    },
    async (request) => ({ api_keys: await apiKeys.list(callerOf(request).tenantId) }),
  );
};
