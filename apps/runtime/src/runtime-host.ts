import { hostname } from 'node:os';
import { publicUrl } from '@svc/config';
import { LIMITS } from '@svc/contract';
import {
  closeGracefully,
  createHttpServer,
  createTokenMinter,
  listenInternally,
  openTracing,
  RequestDrain,
  registerCertificateMetrics,
  registerHttpMetrics,
} from '@svc/service-kit';
import { listenAddress } from '@svc/service-kit/addresses';
import { KeyedBudget, KeyedSlots } from '@svc/service-kit/concurrency';
import { createUnsentBudgets, routeUpgrades } from '@svc/service-kit/websocket';
import { ControlPlaneConnection } from './control-plane/connection.ts';
import { Presence } from './control-plane/presence.ts';
import { SessionDirectory } from './control-plane/session-directory.ts';
import { RuntimeMetrics } from './metrics.ts';
import { DEFAULT_BOUNDS, type RuntimeHost, type RuntimeHostOptions } from './options.ts';
import { OpenConnections } from './proxy/open-connections.ts';
import { operationRoutes } from './routes/operations.ts';
import { sessionSocketRoute } from './routes/session-socket.ts';
import { ConnectionSlots } from './upgrade/connection-slots.ts';

/** Time limits at shutdown: for clients to answer the close, and for requests to finish. */
const END_MS = 5_000;
/** Connections beyond those of sessions: health checks, scrapes, refused handshakes. */
const SPARE_CONNECTIONS = 1_024;
/** Connections of a tenant that no other tenant can take. */
const OWN_CONNECTIONS = 4;
/** Bytes of unfinished messages: those that no other tenant can take, enough for a whole frame, and those for all together. */
const OWN_UNFINISHED_BYTES = 2 * LIMITS.clientFrameBytes;
const SHARED_UNFINISHED_BYTES = 512 * LIMITS.clientFrameBytes;
/** The part of all connections that tenants share. The rest is for those that are their own. */
const SHARED_PART = 3 / 4;

/** Serves the WebSockets of sessions. Keeps no state that a reconnect needs, so that any number can run in parallel. */
export async function startRuntimeHost(options: RuntimeHostOptions): Promise<RuntimeHost> {
  const { config, logger, identity } = options;
  const connectionsPerTenant = config.limits.webSocketsPerTenant;
  const bounds = { ...DEFAULT_BOUNDS, connectionsPerTenant, ...options.bounds };
  const metrics = new RuntimeMetrics();
  const tracing = await openTracing({
    endpoint: config.otlpEndpoint,
    headers: config.otlpHeaders,
    ratio: config.traceRatio,
    component: 'runtime',
    logger,
    registry: metrics.registry,
  });
  const mint = createTokenMinter(identity.key, identity.id);
  const controlPlane = new ControlPlaneConnection(options.controlPlane, mint);
  const sessions = new SessionDirectory(controlPlane, logger);
  const connections = new OpenConnections(bounds, metrics);
  const drain = new RequestDrain(({ routeOptions }) => routeOptions.config.webSocket === true);
  const app = createHttpServer({
    logger,
    tls: options.tls,
    trustProxy: config.trustProxy,
    proxyProtocol: config.proxyProtocol,
    caller: ({ tenantId }) => ({ tenant_id: tenantId }),
    accessLog: config.accessLog,
    tracing: tracing && {
      tracing,
      isFromOutside: ({ routeOptions }) => routeOptions.config.webSocket === true,
    },
    headersTimeoutMs: bounds.handshakeMs,
  });
  app.decorateRequest('tenantId', undefined);
  app.server.maxConnections = bounds.connections + SPARE_CONNECTIONS;
  registerHttpMetrics(app, metrics.registry, 'runtime');
  if (options.tls !== undefined) {
    registerCertificateMetrics(metrics.registry, 'runtime', options.tls);
  }
  drain.watch(app);
  routeUpgrades(app, bounds.handshakeMs + END_MS);
  operationRoutes(app, { sessions, metrics });
  sessionSocketRoute(app, {
    sessions,
    slots: new ConnectionSlots(bounds),
    tenants: new KeyedSlots(bounds.connectionsPerTenant, {
      own: OWN_CONNECTIONS,
      shared: Math.floor(bounds.connections * SHARED_PART),
    }),
    unfinished: new KeyedBudget(bounds.unfinishedBytesPerTenant, {
      own: OWN_UNFINISHED_BYTES,
      shared: SHARED_UNFINISHED_BYTES,
    }),
    unsent: createUnsentBudgets(bounds.unsentBytesPerTenant),
    connections,
    metrics,
    bounds,
    isClosing: () => drain.isRefusing,
  });
  try {
    const { runtimeInternalListen, runtimeListen } = config;
    if (runtimeInternalListen !== undefined) await listenInternally(app, runtimeInternalListen);
    const { host, port } = runtimeListen;
    await app.listen({ host: await listenAddress(host), port });
  } catch (error) {
    await Promise.all([app.close(), controlPlane.close(), tracing?.close()]);
    throw error;
  }
  let closing: Promise<void> | undefined;
  const [address] = app.addresses();
  const port = typeof address === 'object' ? address.port : config.runtimeListen.port;
  const presence = new Presence(controlPlane, `${hostname()}:${port}`, logger);
  return {
    url: publicUrl(undefined, 'wss', config, { ...config.runtimeListen, port }),
    async drain(times, signal) {
      await drain.run(times, signal);
    },
    close: () => {
      drain.refuse();
      closing ??= connections
        .closeAll(END_MS)
        .then(() => closeGracefully(app, END_MS))
        .finally(() => presence.close())
        .finally(() => controlPlane.close())
        .finally(() => tracing?.close());
      return closing;
    },
  };
}
