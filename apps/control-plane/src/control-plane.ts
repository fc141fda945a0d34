import { type Config, publicUrl } from '@svc/config';
import {
  closeGracefully,
  createMetrics,
  type DrainTimes,
  type HttpServer,
  listenInternally,
  openTracing,
  RequestDrain,
  registerCertificateMetrics,
  registerHttpMetrics,
} from '@svc/service-kit';
import { listenAddress } from '@svc/service-kit/addresses';
import type { CertificatePair, ServerCertificate } from '@svc/service-kit/tls';
import type { FastifyBaseLogger } from 'fastify';
import { createApp } from './app.ts';
import { callerFields } from './auth/caller.ts';
import type { ClusterSecrets } from './crypto/cluster-secrets.ts';
import { type Database, openDatabase, openLedger } from './database.ts';
import { exposureOf, isCustomerRequest } from './exposure.ts';
import { registerLedgerMetrics } from './metrics.ts';
import { createLostChunksCounter } from './objects/object-inventory.ts';
import { openObjects } from './objects/open-objects.ts';
import { sweepObjects } from './objects/sweep-objects.ts';
import { Presence } from './presence.ts';
import { LostWorkers } from './reconcile/lost-workers.ts';
import { sweep } from './reconcile/sweeper.ts';
import { objectRules } from './retention/object-rules.ts';
import { createRetentionMetrics, Retention } from './retention/retention.ts';
import { retentionRules } from './retention/rules.ts';
import { archiveTranscripts } from './sessions/transcripts/archive-transcripts.ts';
import { createMailer } from './tenants/mail.ts';
import { createServices } from './wiring.ts';
import { WorkerConnections } from './workers/connections.ts';

const API_VERSION = '1.0.0';

export interface ControlPlaneOptions {
  readonly config: Config;
  readonly logger: FastifyBaseLogger;
  /** They may be replaced while it runs. */
  readonly clusterSecrets: ClusterSecrets;
  /** PEM certificate chain and key, which may be replaced; without them it serves plain HTTP. */
  readonly tls?: CertificatePair | ServerCertificate | undefined;
  /** The ledger's database; default: the configured one. The control plane closes it. */
  readonly database?: Database;
  /** Public URL of the runtime host, read for each session; default: the configured one. */
  readonly runtimeUrl?: () => string;
  /** Monotonic time in ms. Default: that of the process. */
  readonly now?: () => number;
  /** Ends the start when it aborts, but not a control plane that has started. */
  readonly starting?: AbortSignal;
  /** Closes the control plane when it aborts. */
  readonly signal?: AbortSignal;
}

/** A running control plane. */
export interface ControlPlane {
  /** URL of the control plane on this machine, with the port that it is bound to. */
  readonly url: string;
  /** The same for its internal routes and metrics. */
  readonly internalUrl: string;
  /**
   * Makes readiness false, then refuses customers' requests with 503 and waits for those in progress, within `times`;
   * `signal` skips the rest of the wait. Requests of workers are served until {@link close}.
   */
  drain(times: DrainTimes, signal: AbortSignal): Promise<void>;
  /** Gives requests in progress 5 seconds. Closes requests, connections and the embedded database, in this order. */
  close(): Promise<void>;
}

/** Opens and migrates the ledger, then starts to serve. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { config, logger } = options;
  const resources = new AsyncDisposableStack();
  try {
    const database = options.database ?? (await openDatabase(config, logger));
    resources.defer(() => database.close());
    const registry = createMetrics();
    const tracing = await openTracing({
      endpoint: config.otlpEndpoint,
      headers: config.otlpHeaders,
      ratio: config.traceRatio,
      component: 'control-plane',
      version: API_VERSION,
      logger,
      registry,
    });
    // Ends after everything that has spans.
    resources.defer(() => tracing?.close());
    const { signal, starting = signal } = options;
    const store = await openLedger(database.url, config, { logger, registry, signal: starting });
    resources.defer(() => store.close());
    const presence = new Presence({ store, logger });
    await presence.start();
    resources.defer(() => presence.close());
    const connections = new WorkerConnections();
    resources.defer(() => connections.close());
    const mailer = createMailer(config, logger);
    resources.defer(() => mailer.close());
    // Known once the server listens.
    let port = config.listen.port;
    const baseUrl = () => publicUrl(config.baseUrl, 'https', config, { ...config.listen, port });
    const objects = await openObjects({
      config,
      urlKeys: options.clusterSecrets.keysFor('svc object URLs v1'),
      baseUrl,
      registry,
    });
    resources.use(objects.store);
    registerLedgerMetrics(store, registry);
    if (options.tls !== undefined) {
      registerCertificateMetrics(registry, 'control_plane', options.tls);
    }
    const runtimeUrl = options.runtimeUrl ?? (() => runtimeUrlOf(config));
    const lostWorkers = new LostWorkers(store.workers, options.now);
    const services = await createServices({
      ...options,
      lostWorkers,
      baseUrl,
      store,
      connections,
      mailer,
      objects,
      presence,
      registry,
      runtimeUrl,
    });
    const { configUpdates } = services.sessions;
    configUpdates.start();
    resources.defer(() => configUpdates.close());
    const { billingUpkeep } = services;
    billingUpkeep.start();
    resources.defer(() => billingUpkeep.close());
    const drain = new RequestDrain(isCustomerRequest);
    const app = await createApp(
      {
        logger,
        tls: options.tls,
        trustProxy: config.trustProxy,
        proxyProtocol: config.proxyProtocol,
        caller: callerFields,
        accessLog: config.accessLog,
        tracing: tracing && { tracing, isFromOutside: isCustomerRequest },
        browsers: { origins: config.corsOrigins, secure: isPublicHttps(config.baseUrl) },
        exposureOf,
        baseUrl: config.baseUrl ?? '/',
        version: API_VERSION,
        prepare: (server) => {
          registerHttpMetrics(server, registry, 'control_plane');
          drain.watch(server);
        },
      },
      services,
    );
    resources.defer(() => closeGracefully(app));
    // Before the server, which would wait for connections that do not end by themselves.
    resources.defer(() => services.ports.close());
    const sweeping = new AbortController();
    const metrics = createRetentionMetrics(registry);
    const retention = new Retention({ rules: retentionRules(store, config), metrics, logger });
    const sweeper = sweep({ store, lostWorkers, retention, logger }, sweeping.signal);
    resources.defer(() => sweeper);
    resources.defer(() => sweeping.abort());
    const tidying = new AbortController();
    const rules = objectRules({
      store,
      objects: objects.store,
      urls: objects.urls,
      workspaces: services.workspaces,
      lostChunks: createLostChunksCounter(registry),
      logger,
    });
    const objectSweeper = sweepObjects(
      { objects: objects.store, rules, metrics, logger },
      tidying.signal,
    );
    resources.defer(() => objectSweeper);
    const chunks = services.sessions.transcripts;
    const archiver = archiveTranscripts({ store, chunks, logger }, tidying.signal);
    resources.defer(() => archiver);
    resources.defer(() => tidying.abort());
    const { listen, internalListen } = config;
    const internalPort = internalListen && (await listenInternally(app, internalListen));
    await app.listen({ host: await listenAddress(listen.host), port });
    port = boundPort(app) ?? port;
    const ports = { port, internalPort: internalPort ?? port };
    return handleOf(ports, drain, resources.move(), options);
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

function handleOf(
  { port, internalPort }: { readonly port: number; readonly internalPort: number },
  drain: RequestDrain,
  resources: AsyncDisposableStack,
  { config, logger, signal }: ControlPlaneOptions,
): ControlPlane {
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= resources.disposeAsync();
    return closing;
  };
  signal?.addEventListener('abort', () => void close(), { once: true });
  if (signal?.aborted) void close();
  return {
    url: publicUrl(undefined, 'https', config, { ...config.listen, port }),
    internalUrl: publicUrl(undefined, 'https', config, {
      ...(config.internalListen ?? config.listen),
      port: internalPort,
    }),
    async drain(times, hurry) {
      const requests = await drain.run(times, hurry);
      if (requests > 0) logger.warn({ requests }, 'requests in progress are cut off');
    },
    close,
  };
}

function boundPort(app: HttpServer): number | undefined {
  const [address] = app.addresses();
  return typeof address === 'object' ? address.port : undefined;
}

function runtimeUrlOf(config: Config): string {
  return publicUrl(config.runtimeUrl, 'wss', config, config.runtimeListen);
}

/** Strict transport security for `localhost` would make browsers refuse plain HTTP from every other program there. */
function isPublicHttps(baseUrl: string | undefined): boolean {
  if (baseUrl === undefined) return false;
  const { protocol, hostname } = new URL(baseUrl);
  return protocol === 'https:' && !/(^|\.)localhost$/.test(hostname);
}
