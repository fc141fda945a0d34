import { ListTemplatesResponse } from '@svc/contract';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/templates` */
export const listTemplates: Route<'auth' | 'catalogue' | 'limits'> = (
  app,
  { auth, catalogue, limits },
) => {
  app.get(
    '/v1/templates',
    {
      onRequest: [auth.apiKey, limits.catalogueRate],
      schema: {
        operationId: 'listTemplates',
        tags: ['Templates'],
        summary: 'List the apps that sessions can be made with',
        security: BY_API_KEY,
        response: { 200: ListTemplatesResponse, ...authenticatedProblems('rate_limited') },
      },
    },
    async () => ({ templates: await catalogue.list() }),
  );
};
