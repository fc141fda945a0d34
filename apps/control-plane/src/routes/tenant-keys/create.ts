import { CreateApiKeyRequest, CreateTenantKeyResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/tenants/me/api-keys`: this answer is the only one that contains the secret. */
export const createTenantKey: Route<'auth' | 'apiKeys'> = (app, { auth, apiKeys }) => {
  app.post(
    '/v1/tenants/me/api-keys',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'createTenantKey',
        tags: ['Tenants'],
        summary: 'Create an API key with an API key',
        security: BY_API_KEY,
        body: CreateApiKeyRequest,
        response: {
          200: CreateTenantKeyResponse,
          ...authenticatedProblems(...BODY_PROBLEMS, 'api_key_limit_reached'),
        },
      },
    },
    (request) => apiKeys.createTenantKey(callerOf(request), request.body?.name),
  );
};
