import { BundleParams, BundleRecord } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/tenants/me/secrets/{name}`: names of its keys, never a value. */
export const getSecretBundle: Route<'auth' | 'secretBundles'> = (app, { auth, secretBundles }) => {
  app.get(
    '/v1/tenants/me/secrets/:name',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'getSecretBundle',
        tags: ['Secrets'],
        summary: 'Read what a secret bundle holds, without the values',
        security: BY_API_KEY,
        params: BundleParams,
        response: { 200: BundleRecord, ...authenticatedProblems('bundle_not_found') },
      },
    },
    (request) => secretBundles.describe(callerOf(request).tenantId, request.params.name),
  );
};
