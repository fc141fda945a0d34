import {
  resolveLogsQuery,
  ServiceError,
  WorkerLog,
  WorkerLogsQuery,
  WorkerSandboxParams,
} from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { endWith, type LogEnd } from '@svc/service-kit/log-tail';
import type { WorkerContext } from '../context.ts';

const NO_LOG: LogEnd = { bytes: Buffer.alloc(0), totalBytes: 0 };

/**
 * `GET /sandboxes/:id/logs`: the end of the agent's stderr; empty before an agent has run. That of an ended sandbox,
 * which this process may never have known, until the control plane has it.
 */
export function logsRoute(app: HttpServer, context: WorkerContext): void {
  app.get(
    '/sandboxes/:id/logs',
    {
      schema: {
        params: WorkerSandboxParams,
        querystring: WorkerLogsQuery,
        response: { 200: WorkerLog },
      },
    },
    async (request) => {
      const { params, query } = request;
      const wanted = resolveLogsQuery(query);
      const log = await findLog(params.id, context);
      const { bytes, totalBytes } = endWith(log, wanted, query.known_bytes);
      return { end: bytes.toString('base64'), total_bytes: totalBytes };
    },
  );
}

/** @throws ServiceError `sandbox_not_found`, `logs_unavailable` */
async function findLog(vmId: string, { registry, agentLogs }: WorkerContext): Promise<LogEnd> {
  const sandbox = registry.find(vmId);
  const hasAgent = sandbox?.hasRun && sandbox.assignment.placement.agent !== undefined;
  if (sandbox !== undefined && !hasAgent) return NO_LOG;
  if (sandbox?.state === 'running' && sandbox.agent !== undefined) return sandbox.agent.readLog();
  const kept = await agentLogs.find(vmId);
  if (kept !== undefined) return kept;
  throw new ServiceError(sandbox === undefined ? 'sandbox_not_found' : 'logs_unavailable');
}
