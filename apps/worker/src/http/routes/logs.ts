import { LogsQuery, LogsResponse, resolveLogsQuery, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import type { WorkerContext } from '../context.ts';

/** `GET /sandboxes/:id/logs`: the end of the agent's stderr, even after the sandbox has ended. */
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
      // The log of a paused sandbox cannot have grown since it was copied.
      if (sandbox.state === 'running') await sandbox.agent?.keepLog();
      return agentLogs.read(sandbox.id, wanted);
    },
  );
}
