import { LogsQuery, LogsResponse, resolveLogsQuery, SandboxParams } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { WORKER_PROBLEMS } from './problems.ts';

/** `GET /v1/sandboxes/{id}/logs` */
export const readSandboxLogs: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.get(
    '/v1/sandboxes/:id/logs',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'readSandboxLogs',
        tags: ['Sandboxes'],
        summary: "Read the tail of the agent's log",
        security: BY_API_KEY,
        params: SandboxParams,
        querystring: LogsQuery,
        response: {
          200: LogsResponse,
          ...authenticatedProblems(
            ...WORKER_PROBLEMS,
            'validation_failed',
            'log_stream_unknown',
            'log_stream_not_implemented',
            'log_count_invalid',
            'log_lines_and_bytes',
          ),
        },
      },
    },
    (request, reply) =>
      sandboxes.operations.logs(
        callerOf(request),
        request.params.id,
        resolveLogsQuery(request.query),
        clientGoneSignal(reply),
      ),
  );
};
