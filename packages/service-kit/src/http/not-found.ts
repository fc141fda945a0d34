import { ServiceError } from '@svc/contract';
import type { FastifyRequest } from 'fastify';
import type { RoutesTable } from './routes-table.ts';

/**
 * The error for a request without a route: 405 if the path has other methods, otherwise 404.
 * @param isServed whether a route pattern is served where the request arrived
 */
export function noRouteError(
  request: FastifyRequest,
  routes: RoutesTable,
  isServed: (route: string) => boolean,
): ServiceError {
  const path = request.raw.url?.split(/[?#]/, 1)[0] ?? '/';
  const allowed = routes.methodsOf(path, isServed);
  if (allowed.length === 0) return new ServiceError('route_not_found');
  return new ServiceError('method_not_allowed', undefined, {
    headers: { allow: allowed.join(', ') },
  });
}
