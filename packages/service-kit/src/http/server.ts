/** Creates the HTTP servers of the service. */

import { EventEmitter } from 'node:events';
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { SecureVersion } from 'node:tls';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { LIMITS, ServiceError } from '@svc/contract';
import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { CertificatePair } from '../tls/certificate.ts';
import { ServerCertificate } from '../tls/server-certificate.ts';
import { acceptJsonOnly } from './body-parsers.ts';
import { applyBrowserRules, type BrowserRules } from './browsers.ts';
import { answerClientError } from './client-error.ts';
import { ConnectionTracker, trackConnections } from './graceful-close.ts';
import {
  addInternalListener,
  type Exposure,
  InternalListener,
  watchingExposure,
} from './internal-listener.ts';
import { makeRequestLogger } from './lazy-logger.ts';
import { noRouteError } from './not-found.ts';
import { readProxyHeaders } from './proxy-protocol.ts';
import { isWellEncoded } from './query.ts';
import { type CallerFields, RequestFailures } from './request-failures.ts';
import { requestIdOf, sendRequestIds } from './request-id.ts';
import { RequestLog } from './request-log.ts';
import { openScopes, type RequestTracing } from './request-scopes.ts';
import { RoutesTable } from './routes-table.ts';
import { problemSender } from './send-problem.ts';
import { discardUnreadBodies } from './unread-body.ts';
import { cutUnreadResponses, sendInSlices } from './unread-response.ts';
import { compileValidator } from './validation.ts';

export interface HttpServerOptions {
  readonly logger: FastifyBaseLogger;
  /** PEM certificate chain and key, which may be replaced. Without them the server speaks plain HTTP. */
  readonly tls?: CertificatePair | ServerCertificate | undefined;
  /** Maximum size of a parsed body, in bytes; streams are exempt. Default 1 MiB. */
  readonly bodyLimit?: number;
  /** Time limit for the TLS handshake and for a request head, in ms. Default 30 seconds. */
  readonly headersTimeoutMs?: number;
  /** Time limit for a whole request, in ms. Default one hour, for uploads. */
  readonly requestTimeoutMs?: number;
  /** Time limit for the rest of a body after its request has been answered, in ms. Default 10 seconds. */
  readonly unreadBodyMs?: number;
  /** How long a client may read nothing of a response that waits for it, in ms. Default one minute. */
  readonly unreadResponseMs?: number;
  /** The proxies whose X-Forwarded-For header is trusted. Default none. */
  readonly trustProxy?: boolean | readonly string[];
  /** The load balancers whose connections begin with a PROXY header: addresses or networks. Default none. */
  readonly proxyProtocol?: readonly string[];
  /** Who sent a request, for the access log, for spans and for the bound of lines about failures. Default: nothing. */
  readonly caller?: CallerFields;
  /** Whether to log each request at info level. Default: at debug level only. */
  readonly accessLog?: boolean | undefined;
  /** How requests are traced. Default: not at all. */
  readonly tracing?: RequestTracing | undefined;
  /**
   * At which addresses a route pattern is served once {@link listenInternally} has opened an internal one. Default: at the
   * public address alone, apart from the routes by which the server is watched.
   */
  readonly exposureOf?: (route: string) => Exposure;
  /** The rules for browsers; unnecessary for a server that no browser calls. */
  readonly browsers?: BrowserRules;
}

/** A Fastify instance whose routes are typed by their TypeBox schemas. */
export type HttpServer = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

const TLS_VERSION: SecureVersion = 'TLSv1.2';
const HEADERS_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 72_000;
const REQUEST_TIMEOUT_MS = 3_600_000;
const UNREAD_BODY_MS = 10_000;
const UNREAD_RESPONSE_MS = 60_000;
const MAX_PARAM_CHARS = 4096;

/**
 * A server that answers every failure as problem+json, sets X-Request-Id on every response, validates without
 * coercion, and refuses new requests with 503 once closing has begun.
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const connections = new ConnectionTracker();
  const caller = options.caller ?? nobody;
  const failures = new RequestFailures(caller);
  const log = new RequestLog(failures, options.accessLog === true ? caller : undefined);
  const sendProblem = problemSender(failures);
  const listen = (handler: RequestListener): Server => {
    const listener = createListener(handler, options);
    const { proxyProtocol: from = [], headersTimeoutMs: timeoutMs = HEADERS_TIMEOUT_MS } = options;
    if (from.length > 0) readProxyHeaders(listener, { from, timeoutMs });
    connections.watch(listener);
    cutUnreadResponses(listener, connections, options.unreadResponseMs ?? UNREAD_RESPONSE_MS);
    return listener;
  };
  const internal = new InternalListener(
    () => listen((request, response) => app.routing(request, response)),
    options.exposureOf ?? ((route) => watchingExposure(route) ?? 'public'),
  );
  const app: HttpServer = Fastify<Server>({
    loggerInstance: options.logger,
    logController: log,
    childLoggerFactory: makeRequestLogger,
    bodyLimit: options.bodyLimit ?? LIMITS.jsonBodyBytes,
    genReqId: requestIdOf,
    requestIdHeader: false,
    trustProxy: proxiesOf(options.trustProxy),
    // The hook below answers in the common error format.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_CHARS },
    frameworkErrors: sendProblem,
    clientErrorHandler: answerClientError,
    serverFactory: listen,
  }).withTypeProvider<TypeBoxTypeProvider>();
  trackConnections(app, connections);
  addInternalListener(app, internal);
  openScopes(app, {
    tracing: options.tracing,
    caller,
    onAborted: (request, reply) => log.requestAborted(request, reply),
    onUpgraded: (request, reply) => log.requestUpgraded(request, reply),
  });
  sendRequestIds(app);
  app.setErrorHandler(sendProblem);
  app.setValidatorCompiler(compileValidator);
  acceptJsonOnly(app);
  if (options.browsers !== undefined) applyBrowserRules(app, options.browsers);
  guardRequests(app, internal);
  sendInSlices(app);
  discardUnreadBodies(app, options.unreadBodyMs ?? UNREAD_BODY_MS);
  return app;
}

function nobody(): Readonly<Record<string, string | undefined>> {
  return {};
}

function proxiesOf(trusted: HttpServerOptions['trustProxy'] = false): boolean | string[] {
  return typeof trusted === 'boolean' ? trusted : [...trusted];
}

function createListener(handler: RequestListener, options: HttpServerOptions): Server {
  const headersTimeout = options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS;
  const settings = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout,
    // The interval at which Node checks connections for timeouts.
    connectionsCheckingInterval: Math.min(headersTimeout, HEADERS_TIMEOUT_MS),
    requestTimeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
    noDelay: true,
    shouldUpgradeCallback,
  };
  const { tls } = options;
  if (tls === undefined) return createPlainServer(settings, handler);
  const context = ({ cert, key }: CertificatePair) => ({ cert, key, minVersion: TLS_VERSION });
  const server = createTlsServer(
    { ...settings, ...context(tls), handshakeTimeout: headersTimeout },
    handler,
  );
  if (tls instanceof ServerCertificate) {
    server.once(
      'close',
      tls.onReplaced((pair) => server.setSecureContext(context(pair))),
    );
  }
  return server;
}

/**
 * Ignores offers of HTTP/2, which some clients add to each plain request. They continue with HTTP/1.1.
 * https://www.rfc-editor.org/rfc/rfc9110#section-7.8
 */
function shouldUpgradeCallback(this: unknown, { headers }: IncomingMessage): boolean {
  const isServed = this instanceof EventEmitter && this.listenerCount('upgrade') > 0;
  return isServed && headers.upgrade?.toLowerCase() !== 'h2c';
}

function guardRequests(app: HttpServer, internal: InternalListener): void {
  const routes = new RoutesTable();
  let closing = false;
  app.addHook('onRoute', (route) => routes.add(route.url, route.method));
  app.addHook('preClose', (done) => {
    closing = true;
    done();
  });
  // Before the body is parsed, so that an unknown route is 404 whatever its body is.
  app.addHook('onRequest', (request, _reply, done) => {
    const isServed = (route: string) => internal.serves(route, request.raw.socket);
    if (closing) done(new ServiceError('shutting_down'));
    else if (request.is404 || !isServed(request.routeOptions.url ?? '')) {
      done(noRouteError(request, routes, isServed));
    } else if (!isWellEncoded(request.url)) done(new ServiceError('invalid_url'));
    else done();
  });
  // A connection that was busy when closing began would otherwise stay open and delay the close.
  app.addHook('onResponse', (request, _reply, done) => {
    if (closing) request.raw.socket.destroySoon();
    done();
  });
  app.setNotFoundHandler((request) => {
    throw noRouteError(request, routes, (route) => internal.serves(route, request.raw.socket));
  });
}
