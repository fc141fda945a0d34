import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `GET /openapi.json`: generated from the schemas of the routes. */
export const openapiDocument: Route<never> = (app) => {
  app.get(
    '/openapi.json',
    {
      schema: {
        operationId: 'openapi',
        tags: ['Operations'],
        summary: 'This document',
        response: {
          200: Type.Unsafe<unknown>({ type: 'object', additionalProperties: true }),
          ...problems(),
        },
      },
    },
    async () => app.swagger(),
  );
};
