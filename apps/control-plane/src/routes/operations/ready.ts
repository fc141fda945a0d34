import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `GET /readyz`: requests can be served now. */
export const readiness: Route = (app, { ready }) => {
  app.get(
    '/readyz',
    {
      schema: {
        operationId: 'readiness',
        tags: ['Operations'],
        summary: 'Whether requests can be served',
        response: {
          200: Type.Object({ status: Type.Literal('ready') }),
          ...problems('database_unavailable'),
        },
      },
    },
    async () => {
      await ready();
      return { status: 'ready' as const };
    },
  );
};
