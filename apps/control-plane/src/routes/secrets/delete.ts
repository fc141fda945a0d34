import { BundleParams, DeleteBundleResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `DELETE /v1/tenants/me/secrets/{name}`. Running sessions go on with the bundle's last values. */
export const deleteSecretBundle: Route<'auth' | 'secretBundles' | 'agentVault'> = (
  app,
  { auth, secretBundles, agentVault },
) => {
  app.delete(
    '/v1/tenants/me/secrets/:name',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'deleteSecretBundle',
        tags: ['Secrets'],
        summary: 'Delete a secret bundle',
        description: 'Running sessions keep its last values. They cannot be resumed.',
        security: BY_API_KEY,
        params: BundleParams,
        response: { 200: DeleteBundleResponse, ...authenticatedProblems('bundle_not_found') },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const { name } = request.params;
      await secretBundles.delete(caller, name, () => agentVault.keepValues(caller.tenantId, name));
      return { status: 'deleted' as const };
    },
  );
};
