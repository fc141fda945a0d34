import { type Config, publicUrl } from '@svc/config';
import { WORKER_TIMES } from '@svc/contract';
import {
  closeGracefully,
  createMetrics,
  type HttpServer,
  registerHttpMetrics,
  type Secret,
} from '@svc/service-kit';
import type { FastifyBaseLogger } from 'fastify';
import { createApp } from './app.ts';
import { type Database, openDatabase, openLedger } from './database.ts';
import { Draining } from './draining.ts';
import { registerLedgerMetrics } from './metrics.ts';
import { sweep } from './reconcile/sweeper.ts';
import { createMailer } from './tenants/mail.ts';
import { createServices } from './wiring.ts';
import { WorkerConnections } from './workers/connections.ts';

const API_VERSION = '1.0.0';

export interface ControlPlaneOptions {
  readonly config: Config;
  readonly logger: FastifyBaseLogger;
  /** Shared with workers and runtime hosts. */
  readonly clusterSecret: Secret;
  /** PEM certificate chain and key; without them it serves plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** The ledger's database; default: the configured one. The control plane closes it. */
  readonly database?: Database;
  /** Public URL of the runtime host, read for each session; default: the configured one. */
  readonly runtimeUrl?: () => string;
  /** Closes the control plane when it aborts. */
  readonly signal?: AbortSignal;
}

/** A running control plane. */
export interface ControlPlane {
  /** URL of the control plane on this machine, with the port that it is bound to. */
  readonly url: string;
  /** From now on answers public requests with 503; requests of workers are still served. */
  drain(): void;
  /** Closes requests, connections and the embedded database, in this order. */
  close(): Promise<void>;
}

/** Opens and migrates the ledger, then starts to serve. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { config, logger } = options;
  const resources = new AsyncDisposableStack();
  try {
    const database = options.database ?? (await openDatabase(config, logger));
    resources.defer(() => database.close());
    const store = await openLedger(database.url, config, logger, options.signal);
    resources.defer(() => store.close());
    const connections = new WorkerConnections();
    resources.defer(() => connections.close());
    const mailer = createMailer(config, logger);
    resources.defer(() => mailer.close());
    const registry = createMetrics();
    registerLedgerMetrics(store, registry, WORKER_TIMES.unreachableMs);
    const runtimeUrl = options.runtimeUrl ?? (() => runtimeUrlOf(config));
    const services = await createServices({
      ...options,
      store,
      connections,
      mailer,
      registry,
      runtimeUrl,
    });
    resources.defer(() => services.sessions.configUpdates.close());
    const draining = new Draining();
    const app = await createApp(
      {
        logger,
        tls: options.tls,
        trustProxy: [...config.trustProxy],
        browsers: { origins: config.corsOrigins, secure: isPublicHttps(config.baseUrl) },
        baseUrl: config.baseUrl ?? '/',
        version: API_VERSION,
        prepare: (server) => {
          registerHttpMetrics(server, registry, 'control_plane');
          server.addHook('onRequest', async (request) => draining.check(request.url));
        },
      },
      services,
    );
    resources.defer(() => closeGracefully(app));
    const sweeping = new AbortController();
    const sweeper = sweep(store, logger, sweeping.signal);
    resources.defer(() => sweeper);
    resources.defer(() => sweeping.abort());
    await app.listen({ host: config.listen.host, port: config.listen.port });
    return handleOf(app, config, draining, resources.move(), options.signal);
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

function handleOf(
  app: HttpServer,
  config: Config,
  draining: Draining,
  resources: AsyncDisposableStack,
  signal: AbortSignal | undefined,
): ControlPlane {
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= resources.disposeAsync();
    return closing;
  };
  signal?.addEventListener('abort', () => void close(), { once: true });
  if (signal?.aborted) void close();
  const [address] = app.addresses();
  const port = typeof address === 'object' ? address.port : config.listen.port;
  return { url: publicUrl(undefined, 'https', config, port), drain: () => draining.begin(), close };
}

function runtimeUrlOf(config: Config): string {
  return publicUrl(config.runtimeUrl, 'wss', config, config.runtimeListen.port);
}

/** Strict transport security for `localhost` would make browsers refuse plain HTTP from every other program there. */
function isPublicHttps(baseUrl: string | undefined): boolean {
  if (baseUrl === undefined) return false;
  const { protocol, hostname } = new URL(baseUrl);
  return protocol === 'https:' && !/(^|\.)localhost$/.test(hostname);
}
