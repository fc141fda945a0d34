import { INTERNAL_PREFIX } from '@svc/contract';
import { OBJECTS_PATH } from '@svc/object-store';
import type { Exposure } from '@svc/service-kit';
import type { FastifyRequest } from 'fastify';

const METRICS_PATH = '/metrics';
/** The routes by which load balancers watch a control plane. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

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
  if (route.startsWith(INTERNAL_PREFIX) || route === METRICS_PATH) return 'internal';
  return HEALTH_PATHS.has(route) || route.startsWith(OBJECTS_PATH) ? 'both' : 'public';
}
