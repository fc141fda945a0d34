import { AgentSecrets, INTERNAL_PREFIX, WorkerSandboxParams } from '@svc/contract';
import { workerOf } from '../../auth/worker-authenticator.ts';
import type { Route } from '../../services.ts';

/** `GET /internal/v1/sandboxes/{id}/agent-secrets`: for the worker that holds the sandbox. */
export const agentSecrets: Route<'workerAuth' | 'agentVault'> = (
  app,
  { workerAuth, agentVault },
) => {
  app.get(
    `${INTERNAL_PREFIX}/sandboxes/:id/agent-secrets`,
    {
      onRequest: workerAuth.hook,
      schema: { hide: true, params: WorkerSandboxParams, response: { 200: AgentSecrets } },
    },
    (request) => agentVault.open(workerOf(request), request.params.id),
  );
};
