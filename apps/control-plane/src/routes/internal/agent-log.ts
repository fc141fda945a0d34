import {
  AgentLogQuery,
  INTERNAL_PREFIX,
  OCTET_STREAM_MEDIA_TYPE,
  WorkerSandboxParams,
} from '@svc/contract';
import { acceptStreamOnly } from '@svc/service-kit';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';

/** `PUT /internal/v1/sandboxes/{id}/log`: stores the end of an agent's log, for the worker of its sandbox. */
export const agentLog: Route<'componentAuth' | 'sandboxes'> = (app, services) => {
  // A separate scope, since the body is not JSON.
  app.register(async (scope) => {
    acceptStreamOnly(scope, OCTET_STREAM_MEDIA_TYPE);
    addRoute(scope as typeof app, services);
  });
};

const addRoute: Route<'componentAuth' | 'sandboxes'> = (app, { componentAuth, sandboxes }) => {
  app.put(
    `${INTERNAL_PREFIX}/sandboxes/:id/log`,
    {
      onRequest: componentAuth.worker,
      schema: { hide: true, params: WorkerSandboxParams, querystring: AgentLogQuery },
    },
    async (request, reply) => {
      const { params, query, raw } = request;
      const log = { totalBytes: query.total_bytes, end: raw };
      await sandboxes.logs.keep(workerOf(request), params.id, log);
      return reply.code(204).send();
    },
  );
};
