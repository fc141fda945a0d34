import { AgentSecrets, INTERNAL_PREFIX, WorkerSandboxParams } from '@svc/contract';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';

/** `GET /internal/v1/sandboxes/{id}/agent-secrets`: for the worker that holds the sandbox. */
export const agentSecrets: Route<'componentAuth' | 'agentVault'> = (
  app,
  { componentAuth, agentVault },
) => {
  app.get(
    `${INTERNAL_PREFIX}/sandboxes/:id/agent-secrets`,
    {
      onRequest: componentAuth.worker,
      schema: { hide: true, params: WorkerSandboxParams, response: { 200: AgentSecrets } },
    },
    (request) => agentVault.open(workerOf(request), request.params.id),
  );
};
