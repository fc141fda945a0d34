import { CONTROL_PLANE_NAME, INTERNAL_PREFIX, ServiceError } from '@svc/contract';
import { type HttpServer, type TokenVerifier, trustCaller } from '@svc/service-kit';
import type { FastifyRequest } from 'fastify';

/** The routes that are work whatever their method. */
const WORK_ROUTES: ReadonlySet<string | undefined> = new Set([
  `${INTERNAL_PREFIX}/sandboxes/:id/files`,
  `${INTERNAL_PREFIX}/sandboxes/:id/ports/:port`,
]);

/** Admits only the control plane, by its short-lived tokens for this worker. */
export function requireControlPlane(app: HttpServer, verify: TokenVerifier): void {
  app.addHook('onRequest', async (request) => {
    const { issuer } = await verify(request.headers.authorization);
    if (issuer !== CONTROL_PLANE_NAME) throw new ServiceError('unauthorized');
    trustCaller();
  });
}

/**
 * Whether a request is work, which a worker that is about to end refuses. Sandboxes can still be read and deleted, and
 * clients can attach to sessions.
 */
export function isWork({ method, routeOptions }: FastifyRequest): boolean {
  return method === 'POST' || WORK_ROUTES.has(routeOptions.url);
}
