import { ServiceError } from '@svc/contract';
import type { TokenVerifier } from '@svc/service-kit';
import type { FastifyRequest } from 'fastify';

/** Hook for `onRequest` of the routes that workers call, and the name that the token proved. */
export interface WorkerAuthenticator {
  readonly hook: (request: FastifyRequest) => Promise<void>;
}

declare module 'fastify' {
  interface FastifyRequest {
    workerId: string | undefined;
  }
}

export function createWorkerAuthenticator(verify: TokenVerifier): WorkerAuthenticator {
  return {
    hook: async (request) => {
      const { issuer } = await verify(request.headers.authorization);
      request.workerId = issuer;
    },
  };
}

/** A worker speaks for itself only. @throws ServiceError `worker_id_mismatch` */
export function requireWorker(request: FastifyRequest, workerId: string): void {
  if (request.workerId !== workerId) throw new ServiceError('worker_id_mismatch');
}

/** Who calls an authenticated internal route. @throws ServiceError `unauthorized` */
export function workerOf(request: FastifyRequest): string {
  if (request.workerId === undefined) throw new ServiceError('unauthorized');
  return request.workerId;
}
