import { CONTROL_PLANE_NAME, ServiceError } from '@svc/contract';
import type { HttpServer, TokenVerifier } from '@svc/service-kit';

/** Admits only the control plane, by its short-lived tokens for this worker. */
export function requireControlPlane(app: HttpServer, verify: TokenVerifier): void {
  app.addHook('onRequest', async (request) => {
    const { issuer } = await verify(request.headers.authorization);
    if (issuer !== CONTROL_PLANE_NAME) throw new ServiceError('unauthorized');
  });
}

/** Refuses new work once the worker ends. Sandboxes can still be read and deleted. */
export function refuseWorkWhenEnding(app: HttpServer, ending: AbortSignal): void {
  app.addHook('onRequest', (request, _reply, done) => {
    done(
      ending.aborted && request.method === 'POST' ? new ServiceError('shutting_down') : undefined,
    );
  });
}
