import { ApiKeyIdParams, RevokeApiKeyResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `DELETE /v1/api-keys/{id}`: permanent, and effective immediately on every control plane. */
export const revokeApiKey: Route<'auth' | 'apiKeys'> = (app, { auth, apiKeys }) => {
  app.delete(
    '/v1/api-keys/:id',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'revokeApiKey',
        tags: ['API keys'],
        summary: 'Revoke an API key',
        security: BY_ACCOUNT,
        params: ApiKeyIdParams,
        response: { 200: RevokeApiKeyResponse, ...authenticatedProblems('api_key_not_found') },
      },
    },
    async (request) => {
      await apiKeys.revoke(callerOf(request), request.params.id);
      return { status: 'revoked' as const };
    },
  );
};
