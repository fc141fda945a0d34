import { makeProblem, PROBLEM_MEDIA_TYPE, type Problem, type ServiceError } from '@svc/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isClientGone } from './client-gone.ts';
import { toServiceError } from './framework-errors.ts';
import type { RequestFailures } from './request-failures.ts';
import { REQUEST_ID_HEADER } from './request-id.ts';
import { scopeOf } from './request-scopes.ts';

const MAX_PLACE_CHARS = 300;

type ErrorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;

/** The error handler for Fastify: answers every failure as problem+json and logs those that concern an operator. */
export function problemSender(failures: RequestFailures): ErrorHandler {
  return (error, request, reply) => {
    const failure = toServiceError(error);
    logFailure(failure, request, failures);
    sendProblem(failure, request, reply);
  };
}

function sendProblem(failure: ServiceError, request: FastifyRequest, reply: FastifyReply): void {
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

function logFailure(
  failure: ServiceError,
  request: FastifyRequest,
  failures: RequestFailures,
): void {
  const { code } = failure;
  const route = { method: request.method, route: request.routeOptions.url };
  if (isClientGone(failure)) {
    request.log.debug({ ...route, code }, 'client disconnected before the response');
  } else if (code === 'internal_error') {
    const err = failure.cause ?? failure;
    failures.note(request, `${code} ${placeOf(err)}`, {
      level: 'error',
      message: 'request failed unexpectedly',
      fields: { err },
    });
  } else if (failure.status >= 500) {
    failures.note(request, code, {
      level: 'warn',
      message: 'request failed',
      fields: { code, err: failure.cause },
    });
  } else {
    request.log.debug({ ...route, code }, 'request refused');
  }
}

/** Where an error was thrown, without its message, in which a client may have a say. */
function placeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const [frame = ''] = /^ +at .*$/m.exec((error.stack ?? '').replace(error.message, '')) ?? [];
  return `${error.name}${frame}`.slice(0, MAX_PLACE_CHARS);
}
