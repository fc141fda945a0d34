import { INTERNAL_PREFIX, RuntimeHostParams, RuntimeHostReport } from '@svc/contract';
import type { Route } from '../../services.ts';

const PATH = `${INTERNAL_PREFIX}/runtime-hosts/:runtime_host_id`;

/** `PUT /internal/v1/runtime-hosts/{id}`: a runtime host is alive. */
export const reportRuntimeHost: Route<'componentAuth' | 'runtimeHosts'> = (
  app,
  { componentAuth, runtimeHosts },
) => {
  app.put(
    PATH,
    {
      onRequest: componentAuth.runtime,
      schema: { hide: true, params: RuntimeHostParams, body: RuntimeHostReport },
    },
    async ({ params, body }, reply) => {
      await runtimeHosts.beat(params.runtime_host_id, body.name);
      return reply.code(204).send();
    },
  );
};

/** `DELETE /internal/v1/runtime-hosts/{id}`: a runtime host ends in order. */
export const removeRuntimeHost: Route<'componentAuth' | 'runtimeHosts'> = (
  app,
  { componentAuth, runtimeHosts },
) => {
  app.delete(
    PATH,
    {
      onRequest: componentAuth.runtime,
      schema: { hide: true, params: RuntimeHostParams },
    },
    async ({ params }, reply) => {
      await runtimeHosts.leave(params.runtime_host_id);
      return reply.code(204).send();
    },
  );
};
