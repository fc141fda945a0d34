import { createHash } from 'node:crypto';
import { INTERNAL_PREFIX, RuntimeHostParams, RuntimeHostReport } from '@svc/contract';
import { runtimeOf } from '../../auth/component-authenticator.ts';
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
    async (request, reply) => {
      await runtimeHosts.beat(entryOf(runtimeOf(request)), request.body.name);
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
    async (request, reply) => {
      await runtimeHosts.leave(entryOf(runtimeOf(request)));
      return reply.code(204).send();
    },
  );
};

/**
 * The UUID of the only entry of a runtime host. By the UUID in the path, one could add any number of entries and remove those
 * of others.
 */
function entryOf(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32);
}
