import { LogsQuery, LogsResponse, resolveLogsQuery, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { agentLogPath, readAgentLog } from '../../logs/agent-log.ts';
import type { WorkerContext } from '../context.ts';

/** `GET /sandboxes/:id/logs`: the tail of the agent's stderr; also after the sandbox has ended. */
export function logsRoute(app: HttpServer, { registry, logDirectory }: WorkerContext): void {
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
      return readAgentLog(agentLogPath(logDirectory, sandbox.id), wanted);
    },
  );
}
