import { LogsQuery, LogsResponse, resolveLogsQuery, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /sandboxes/:id/logs`: the tail of the agent's stderr; also after the sandbox has ended. */
export function logsRoute(app: HttpServer, { registry, agentLogs }: WorkerContext): void {
  app.get(
    '/sandboxes/:id/logs',
    {
      schema: {
        params: WorkerSandboxParams,
        querystring: LogsQuery,
        response: { 200: LogsResponse },
      },
    },
    async (request) => {
      const wanted = resolveLogsQuery(request.query);
      const sandbox = registry.get(request.params.id);
      // A paused sandbox is left alone: its log cannot have grown since it was copied.
      if (sandbox.state === 'running') await sandbox.agent?.keepLog();
      return agentLogs.read(sandbox.id, wanted);
    },
  );
}
