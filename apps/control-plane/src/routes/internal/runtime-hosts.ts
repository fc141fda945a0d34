import {
  INTERNAL_PREFIX,
  RUNTIME_NAME,
  RuntimeHostParams,
  RuntimeHostReport,
  ServiceError,
} from '@svc/contract';
import type { FastifyRequest } from 'fastify';
import type { Route } from '../../services.ts';

const PATH = `${INTERNAL_PREFIX}/runtime-hosts/:runtime_host_id`;

/** `PUT /internal/v1/runtime-hosts/{id}`: a runtime host is alive. */
export const reportRuntimeHost: Route<'workerAuth' | 'runtimeHosts'> = (
  app,
  { workerAuth, runtimeHosts },
) => {
  app.put(
    PATH,
    {
      onRequest: [workerAuth.hook, requireRuntimeHost],
      schema: { hide: true, params: RuntimeHostParams, body: RuntimeHostReport },
    },
    async ({ params, body }, reply) => {
      await runtimeHosts.beat(params.runtime_host_id, body.name);
      return reply.code(204).send();
    },
  );
};

/** `DELETE /internal/v1/runtime-hosts/{id}`: a runtime host ends in order. */
export const removeRuntimeHost: Route<'workerAuth' | 'runtimeHosts'> = (
  app,
  { workerAuth, runtimeHosts },
) => {
  app.delete(
    PATH,
    {
      onRequest: [workerAuth.hook, requireRuntimeHost],
      schema: { hide: true, params: RuntimeHostParams },
    },
    async ({ params }, reply) => {
      await runtimeHosts.leave(params.runtime_host_id);
      return reply.code(204).send();
    },
  );
};

async function requireRuntimeHost({ workerId }: FastifyRequest): Promise<void> {
  if (workerId !== RUNTIME_NAME) throw new ServiceError('unauthorized');
}
