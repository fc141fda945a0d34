import { LogsQuery, LogsResponse, resolveLogsQuery, SandboxParams } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

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
        description:
          'Empty before any agent has run. The log of an ended sandbox can be read as long as its record, even if its worker is gone. If the worker is lost before it could send the log, what was read before can still be read, with `truncated`; 503 `logs_unavailable` if nothing was.',
        security: BY_API_KEY,
        params: SandboxParams,
        querystring: LogsQuery,
        response: {
          200: LogsResponse,
          ...authenticatedProblems(
            'sandbox_not_found',
            'too_many_operations',
            'logs_unavailable',
            'worker_bad_response',
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
      sandboxes.logs.read(
        callerOf(request),
        request.params.id,
        resolveLogsQuery(request.query),
        clientGoneSignal(reply),
      ),
  );
};
