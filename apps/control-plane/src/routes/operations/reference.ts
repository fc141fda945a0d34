import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import { renderReference } from '../../openapi/reference.ts';
import type { Route } from '../../services.ts';

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/** `GET /docs`: the API reference as one self-contained page. */
export const referencePage: Route<never> = (app) => {
  let page: string | undefined;
  app.get(
    '/docs',
    {
      schema: {
        operationId: 'reference',
        tags: ['Operations'],
        summary: 'The API reference as a page',
        response: {
          200: {
            description: 'The page.',
            content: { 'text/html': { schema: Type.String() } },
          },
          ...problems(),
        },
      },
    },
    async (_request, reply) => {
      page ??= renderReference(app.swagger());
      return reply
        .type('text/html; charset=utf-8')
        .header('content-security-policy', CONTENT_SECURITY_POLICY)
        .send(page);
    },
  );
};
