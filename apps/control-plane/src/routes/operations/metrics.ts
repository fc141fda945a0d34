import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `GET /metrics` */
export const metricsPage: Route<'monitoring'> = (app, { monitoring }) => {
  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'metrics',
        tags: ['Operations'],
        summary: 'Metrics in the Prometheus text format',
        response: {
          200: {
            description: 'The metrics.',
            content: { 'text/plain': { schema: Type.String() } },
          },
          ...problems(),
        },
      },
    },
    async (_request, reply) =>
      reply.type('text/plain; version=0.0.4; charset=utf-8').send(await monitoring.metrics()),
  );
};
