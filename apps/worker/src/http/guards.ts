import { CONTROL_PLANE_NAME, ServiceError } from '@svc/contract';
import type { HttpServer, TokenVerifier } from '@svc/service-kit';

/** Lets only the control plane in, by its short-lived tokens for this very worker. */
export function requireControlPlane(app: HttpServer, verify: TokenVerifier): void {
  app.addHook('onRequest', async (request) => {
    const { issuer } = await verify(request.headers.authorization);
    if (issuer !== CONTROL_PLANE_NAME) throw new ServiceError('unauthorized');
  });
}

/** Once the worker ends, it takes no new work; what is there can still be looked at and deleted. */
export function refuseWorkWhenEnding(app: HttpServer, ending: AbortSignal): void {
  app.addHook('onRequest', (request, _reply, done) => {
    done(
      ending.aborted && request.method === 'POST' ? new ServiceError('shutting_down') : undefined,
    );
  });
}
