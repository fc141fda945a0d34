import { INTERNAL_PREFIX } from '@svc/contract';
import { OBJECTS_PATH } from '@svc/object-store';
import { type Exposure, watchingExposure } from '@svc/service-kit';
import type { FastifyRequest } from 'fastify';

/**
 * Whether a request comes from a customer: neither from a component of the service nor from its operator. Requests for
 * objects count as those of workers, which save the files of their sessions until the end.
 */
export function isCustomerRequest({ url, routeOptions }: FastifyRequest): boolean {
  return exposureOf(routeOptions.url ?? url) === 'public';
}

/**
 * At which addresses a route is served when the control plane has an internal one. URLs of objects carry their own
 * permission, and customers use them too.
 */
export function exposureOf(route: string): Exposure {
  if (route.startsWith(INTERNAL_PREFIX)) return 'internal';
  if (route.startsWith(OBJECTS_PATH)) return 'both';
  return watchingExposure(route) ?? 'public';
}
