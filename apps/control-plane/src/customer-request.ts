import { INTERNAL_PREFIX } from '@svc/contract';
import { OBJECTS_PATH } from '@svc/object-store';
import type { FastifyRequest } from 'fastify';

/** The routes by which operators watch a control plane. */
const WATCHING: ReadonlySet<string | undefined> = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * Whether a request comes from a customer: neither from a component of the service nor from its operator. Requests for
 * objects count as those of workers, which save the files of their sessions until the end.
 */
export function isCustomerRequest({ url, routeOptions }: FastifyRequest): boolean {
  const isInternal = url.startsWith(INTERNAL_PREFIX) || url.startsWith(OBJECTS_PATH);
  return !isInternal && !WATCHING.has(routeOptions.url);
}
