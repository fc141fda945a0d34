import { makeProblem, PROBLEM_MEDIA_TYPE, type Problem, type ServiceError } from '@svc/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isClientGone } from './client-gone.ts';
import { toServiceError } from './framework-errors.ts';
import { REQUEST_ID_HEADER } from './request-id.ts';
import { scopeOf } from './request-scopes.ts';

/** The error handler for Fastify: answers every failure as problem+json and logs those that concern an operator. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const failure = toServiceError(error);
  logFailure(failure, request);
  if (failure.status === 401) reply.header('www-authenticate', 'Bearer');
  // Do not read the rest of a body that is too large.
  if (failure.status === 413) reply.header('connection', 'close');
  reply
    .code(failure.status)
    .headers(failure.headers)
    .header(REQUEST_ID_HEADER, request.id)
    .header('cache-control', 'no-store')
    .type(PROBLEM_MEDIA_TYPE)
    // A buffer bypasses the route's schema, which may not describe this response, and gets no charset.
    .send(Buffer.from(JSON.stringify(problemOf(failure, request))));
}

function problemOf(failure: ServiceError, request: FastifyRequest): Problem {
  const traceId = scopeOf(request)?.traceId;
  return {
    ...makeProblem(failure.code, request.id, failure.message, failure.errors),
    ...(traceId === undefined ? {} : { trace_id: traceId }),
  };
}

function logFailure(failure: ServiceError, request: FastifyRequest): void {
  const route = { method: request.method, route: request.routeOptions.url };
  if (isClientGone(failure)) {
    request.log.debug({ ...route, code: failure.code }, 'client disconnected before the response');
  } else if (failure.code === 'internal_error') {
    request.log.error({ ...route, err: failure.cause ?? failure }, 'request failed unexpectedly');
  } else if (failure.status >= 500) {
    request.log.warn({ ...route, code: failure.code, err: failure.cause }, 'request failed');
  } else {
    request.log.debug({ ...route, code: failure.code }, 'request refused');
  }
}
