import type { IncomingMessage } from 'node:http';
import { INTERNAL_PREFIX } from '@svc/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RequestScope } from '../tracing/request-scope.ts';
import { parseTraceparent, TRACEPARENT_HEADER } from '../tracing/traceparent.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { upgradeOf } from '../websocket/upgrades.ts';

/** How the requests of a server are traced. */
export interface RequestTracing {
  readonly tracing: Tracing;
  /** Whether a request comes from outside, so that a trace may begin with it. */
  readonly isFromOutside: (request: FastifyRequest) => boolean;
}

export interface ScopeOptions {
  readonly tracing?: RequestTracing | undefined;
  /** Who sent a request. */
  readonly caller: (request: FastifyRequest) => Readonly<Record<string, string | undefined>>;
  readonly onAborted: (request: FastifyRequest, reply: FastifyReply) => void;
  readonly onUpgraded: (request: FastifyRequest, reply: FastifyReply) => void;
}

const SERVER_ERROR = 500;
const SWITCHING_PROTOCOLS = 101;

const scopes = new WeakMap<IncomingMessage, RequestScope>();

/** The scope of a request. Undefined only for those that Fastify refuses before its hooks run. */
export function scopeOf({ raw }: Pick<FastifyRequest, 'raw'>): RequestScope | undefined {
  return scopes.get(raw);
}

/**
 * Gives each request its scope, and with tracing its span. The trace of a caller from outside goes on, but whether it is
 * recorded is decided here: neither its flags nor its choice of the trace id have a say. A component decides for its own
 * calls, once it is authenticated. Call it before any hook that refuses requests.
 */
export function openScopes(app: Pick<FastifyInstance, 'addHook'>, options: ScopeOptions): void {
  app.addHook('onRequest', (request, reply, done) => {
    const scope = new RequestScope(request.id);
    scopes.set(request.raw, scope);
    if (options.tracing !== undefined) trace(scope, request, options.tracing);
    watchEnd(scope, request, reply, options);
    scope.run(done);
  });
  // A body is read in the context of its connection.
  app.addHook('preValidation', (request, _reply, done) => {
    const scope = scopeOf(request);
    if (scope === undefined) done();
    else scope.run(done);
  });
}

function trace(
  scope: RequestScope,
  request: FastifyRequest,
  { tracing, isFromOutside }: RequestTracing,
): void {
  const caller = parseTraceparent(request.headers[TRACEPARENT_HEADER]);
  const { method, routeOptions } = request;
  const startedAt = new Date();
  const record = () =>
    scope.record(tracing, {
      name: routeOptions.url === undefined ? method : `${method} ${routeOptions.url}`,
      kind: 'server',
      parent: caller,
      startedAt,
      attributes: {
        'http.request.method': method,
        'http.route': routeOptions.url,
        'svc.request_id': request.id,
      },
    });
  if (routeOptions.url?.startsWith(INTERNAL_PREFIX)) {
    if (caller?.sampled === true) scope.whenTrusted(record);
  } else if (isFromOutside(request)) {
    if (caller !== undefined) scope.note(caller.traceId);
    if (tracing.takesNew()) record();
  }
}

function watchEnd(
  scope: RequestScope,
  request: FastifyRequest,
  reply: FastifyReply,
  { caller, onAborted, onUpgraded }: ScopeOptions,
): void {
  const end = (status: number | undefined) => {
    scope.set({ 'http.response.status_code': status });
    for (const [name, value] of Object.entries(caller(request))) {
      scope.set({ [`svc.${name}`]: value });
    }
    if (status === undefined) scope.fail('aborted');
    else if (status >= SERVER_ERROR) scope.fail(String(status));
    scope.end();
  };
  reply.raw.once('finish', () => end(reply.statusCode));
  reply.raw.once('close', () => {
    if (scope.isOver) return;
    end(undefined);
    onAborted(request, reply);
  });
  upgradeOf(request.raw)?.whenTaken(() => {
    end(SWITCHING_PROTOCOLS);
    onUpgraded(request, reply);
  });
}
