import { BundleParams, LIMITS, RotateBundleRequest, RotateBundleResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { VALUE_PROBLEMS } from './problems.ts';

/** `PUT /v1/tenants/me/secrets/{name}`: replaces all values, also for running sessions. */
export const rotateSecretBundle: Route<'auth' | 'secretBundles' | 'sessions'> = (
  app,
  { auth, secretBundles, sessions },
) => {
  app.put(
    '/v1/tenants/me/secrets/:name',
    {
      onRequest: auth.apiKey,
      bodyLimit: LIMITS.secretBodyBytes,
      schema: {
        operationId: 'rotateSecretBundle',
        tags: ['Secrets'],
        summary: 'Replace all values of a secret bundle',
        description:
          'Running sessions that use the bundle get the new values without an interruption of their task: the key from the next model request, `LLM_MODEL` and `LLM_BASE_URL` from the next task unless the session names its own. Each of them sends a `config_update` frame.',
        security: BY_API_KEY,
        params: BundleParams,
        body: RotateBundleRequest,
        response: {
          200: RotateBundleResponse,
          ...authenticatedProblems(...BODY_PROBLEMS, ...VALUE_PROBLEMS, 'bundle_not_found'),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const { name } = request.params;
      const rotated = await secretBundles.rotate(caller, name, request.body.values);
      sessions.configUpdates.wake();
      return rotated;
    },
  );
};
