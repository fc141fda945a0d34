import { ServiceError } from '@svc/contract';
import type { FastifyRequest } from 'fastify';

/** Who a request comes from, once its credential was found good. */
export interface Caller {
  readonly tenantId: string;
  /** The API key that the request carries; undefined when it carries an account token. */
  readonly keyId?: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | undefined;
  }
}

/** The caller of an authenticated route. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === undefined) throw new ServiceError('unauthorized');
  return request.caller;
}
