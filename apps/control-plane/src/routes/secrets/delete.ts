import { BundleParams, DeleteBundleResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `DELETE /v1/tenants/me/secrets/{name}` */
export const deleteSecretBundle: Route<'auth' | 'secretBundles'> = (
  app,
  { auth, secretBundles },
) => {
  app.delete(
    '/v1/tenants/me/secrets/:name',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'deleteSecretBundle',
        tags: ['Secrets'],
        summary: 'Delete a secret bundle',
        security: BY_API_KEY,
        params: BundleParams,
        response: { 200: DeleteBundleResponse, ...authenticatedProblems('bundle_not_found') },
      },
    },
    async (request) => {
      await secretBundles.delete(callerOf(request), request.params.name);
      return { status: 'deleted' as const };
    },
  );
};
