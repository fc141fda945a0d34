import { CreateApiKeyRequest, CreateApiKeyResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/api-keys`: this answer is the only one that contains the secret. */
export const createApiKey: Route<'auth' | 'apiKeys'> = (app, { auth, apiKeys }) => {
  app.post(
    '/v1/api-keys',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'createApiKey',
        tags: ['API keys'],
        summary: 'Create an API key',
        security: BY_ACCOUNT,
        body: CreateApiKeyRequest,
        response: {
          201: CreateApiKeyResponse,
          ...authenticatedProblems(...BODY_PROBLEMS, 'api_key_limit_reached'),
        },
      },
    },
    async (request, reply) =>
      reply.code(201).send(await apiKeys.createLiveKey(callerOf(request), request.body?.name)),
  );
};
