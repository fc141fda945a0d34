import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `GET /healthz`: whether the process is alive; does not check its dependencies. */
export const health: Route<never> = (app) => {
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
