import { CreateBundleRequest, CreateBundleResponse, LIMITS } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { VALUE_PROBLEMS } from './problems.ts';
/** `POST /v1/tenants/me/secrets` */
export const createSecretBundle: Route<'auth' | 'secretBundles'> = (
  app,
  { auth, secretBundles },
) => {
  app.post(
    '/v1/tenants/me/secrets',
    {
      onRequest: auth.apiKey,
      bodyLimit: LIMITS.secretBodyBytes,
      schema: {
        operationId: 'createSecretBundle',
        tags: ['Secrets'],
        summary: 'Create a secret bundle',
        security: BY_API_KEY,
        body: CreateBundleRequest,
        response: {
          201: CreateBundleResponse,
          ...authenticatedProblems(
            ...BODY_PROBLEMS,
            ...VALUE_PROBLEMS,
            'bundle_name_invalid',
            'bundle_exists',
            'bundle_quota_exceeded',
          ),
        },
      },
    },
    async (request, reply) =>
      reply.code(201).send(await secretBundles.create(callerOf(request), request.body)),
  );
};
