import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `GET /readyz`: whether the control plane can serve requests. It is 503 `shutting_down` once it drains. */
export const readiness: Route<'monitoring'> = (app, { monitoring }) => {
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
      await monitoring.ready();
      return { status: 'ready' as const };
    },
  );
};
