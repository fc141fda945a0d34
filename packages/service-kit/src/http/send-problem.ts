import { makeProblem, PROBLEM_MEDIA_TYPE, type ServiceError } from '@svc/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isClientGone } from './client-gone.ts';
import { toServiceError } from './framework-errors.ts';
import { REQUEST_ID_HEADER } from './request-id.ts';

/** Fastify's error handler: answers any failure as problem+json and logs what an operator must know. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const failure = toServiceError(error);
  logFailure(failure, request);
  if (failure.status === 401) reply.header('www-authenticate', 'Bearer');
  // The rest of a body that is too large is not worth reading.
  if (failure.status === 413) reply.header('connection', 'close');
  reply
    .code(failure.status)
    .headers(failure.headers)
    .header(REQUEST_ID_HEADER, request.id)
    .header('cache-control', 'no-store')
    .type(PROBLEM_MEDIA_TYPE)
    // Bytes pass by the schema of the route, which may not describe this answer, and get no charset added.
    .send(Buffer.from(JSON.stringify(problemOf(failure, request.id))));
}

function problemOf(failure: ServiceError, requestId: string) {
  return makeProblem(failure.code, requestId, failure.message, failure.errors);
}

function logFailure(failure: ServiceError, request: FastifyRequest): void {
  const route = { method: request.method, route: request.routeOptions.url };
  if (isClientGone(failure)) {
    request.log.debug({ ...route, code: failure.code }, 'client left before the answer');
  } else if (failure.code === 'internal_error') {
    request.log.error({ ...route, err: failure.cause ?? failure }, 'request failed unexpectedly');
  } else if (failure.status >= 500) {
    request.log.warn({ ...route, code: failure.code, err: failure.cause }, 'request failed');
  } else {
    request.log.debug({ ...route, code: failure.code }, 'request refused');
  }
}
