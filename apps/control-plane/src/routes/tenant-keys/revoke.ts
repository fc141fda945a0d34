import { ApiKeyParams } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, NO_CONTENT } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `DELETE /v1/tenants/me/api-keys/{key_id}`: permanent, and effective immediately on every control plane. */
export const revokeTenantKey: Route<'auth' | 'apiKeys'> = (app, { auth, apiKeys }) => {
  app.delete(
    '/v1/tenants/me/api-keys/:key_id',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'revokeTenantKey',
        tags: ['Tenants'],
        summary: 'Revoke an API key with an API key',
        security: BY_API_KEY,
        params: ApiKeyParams,
        response: { 204: NO_CONTENT, ...authenticatedProblems('api_key_not_found') },
      },
    },
    async (request, reply) => {
      await apiKeys.revoke(callerOf(request), request.params.key_id);
      return reply.code(204).send(null);
    },
  );
};
