import { ServiceError } from '@svc/contract';
import type { FastifyRequest } from 'fastify';

/** The authenticated sender of a request. */
export interface Caller {
  readonly tenantId: string;
  /** Id of the request's API key; undefined when it has an account token. */
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

/** Who sent a request, for the access log. */
export function callerFields({
  caller,
  component,
}: FastifyRequest): Record<string, string | undefined> {
  return { tenant_id: caller?.tenantId, key_id: caller?.keyId, component_id: component?.id };
}
