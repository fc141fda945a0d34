import { CONTROL_PLANE_NAME, INTERNAL_PREFIX, ServiceError } from '@svc/contract';
import type { HttpServer, TokenVerifier } from '@svc/service-kit';
import type { FastifyRequest } from 'fastify';

const FILES_ROUTE = `${INTERNAL_PREFIX}/sandboxes/:id/files`;

/** Admits only the control plane, by its short-lived tokens for this worker. */
export function requireControlPlane(app: HttpServer, verify: TokenVerifier): void {
  app.addHook('onRequest', async (request) => {
    const { issuer } = await verify(request.headers.authorization);
    if (issuer !== CONTROL_PLANE_NAME) throw new ServiceError('unauthorized');
  });
}

/**
 * Whether a request is work, which a worker that is about to end refuses. Sandboxes can still be read and deleted, and
 * clients can attach to sessions.
 */
export function isWork({ method, routeOptions }: FastifyRequest): boolean {
  return method === 'POST' || routeOptions.url === FILES_ROUTE;
}
