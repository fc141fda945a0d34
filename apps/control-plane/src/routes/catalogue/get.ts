import { CatalogueEntry, CatalogueParams } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/templates/{app_id}`: requests for unknown ones are audited. */
export const getTemplate: Route<'auth' | 'catalogue' | 'limits'> = (
  app,
  { auth, catalogue, limits },
) => {
  app.get(
    '/v1/templates/:app_id',
    {
      onRequest: [auth.apiKey, limits.catalogueRate],
      schema: {
        operationId: 'getTemplate',
        tags: ['Templates'],
        summary: 'Read one app of the catalogue',
        security: BY_API_KEY,
        params: CatalogueParams,
        response: {
          200: CatalogueEntry,
          ...authenticatedProblems('rate_limited', 'template_not_found'),
        },
      },
    },
    (request) => catalogue.find(callerOf(request), request.params.app_id),
  );
};
