import { ServiceError } from '@svc/contract';
import { type TokenVerifier, trustCaller } from '@svc/service-kit';
import type { FastifyRequest } from 'fastify';
import { setStatementOwner } from './statement-owners.ts';

/** Authenticates the callers of internal routes. */
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
      trustCaller();
      setStatementOwner(request, { pool: 'service', key: issuer });
    },
  };
}

/** Checks that a worker reports only under its own id. @throws ServiceError `worker_id_mismatch` */
export function requireWorker(request: FastifyRequest, workerId: string): void {
  if (request.workerId !== workerId) throw new ServiceError('worker_id_mismatch');
}

/** The caller of an internal route. @throws ServiceError `unauthorized` */
export function workerOf(request: FastifyRequest): string {
  if (request.workerId === undefined) throw new ServiceError('unauthorized');
  return request.workerId;
}
