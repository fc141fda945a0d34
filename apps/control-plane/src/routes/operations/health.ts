import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `GET /healthz`: the process lives; says nothing of what it depends on. */
export const health: Route = (app) => {
  app.get(
    '/healthz',
    {
      schema: {
        operationId: 'health',
        tags: ['Operations'],
        summary: 'Whether the process lives',
        response: { 200: Type.Object({ status: Type.Literal('ok') }), ...problems() },
      },
    },
    async () => ({ status: 'ok' as const }),
  );
};
