import { INTERNAL_PREFIX, isServiceError, ServiceError, WORKER_TIMES } from '@svc/contract';
import {
  type Config,
  createMetrics,
  type HttpServer,
  publicUrl,
  registerHttpMetrics,
  retry,
  type Secret,
} from '@svc/service-kit';
import { openStore, type Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { createApp } from './app.ts';
import { type Database, openDatabase } from './database.ts';
import { sweep } from './reconcile/sweeper.ts';
import { createMailer, createServices } from './wiring.ts';
import { WorkerConnections } from './workers/connections.ts';

/**
 * Memory that may be promised for each MiB of a worker. Guests share the pages of their image and
 * rarely touch all they are given; a worker that runs low refuses by itself.
 */
const MEMORY_OVERCOMMIT = 4;
const API_VERSION = '1.0.0';
/** Requests under way at the end get this long before their connections are cut. */
const CLOSE_GRACE_MS = 5_000;
/** With the usual backoff: about half a minute. */
const DATABASE_ATTEMPTS = 15;

export interface ControlPlaneOptions {
  readonly config: Config;
  readonly logger: FastifyBaseLogger;
  /** Shared with workers and runtime hosts. */
  readonly clusterSecret: Secret;
  /** PEM certificate chain and key; without them it speaks plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** The ledger's database; by default what the configuration says. Closed together with the rest. */
  readonly database?: Database;
  /** Closes the control plane when it aborts. */
  readonly signal?: AbortSignal;
}

/** A control plane that serves. */
export interface ControlPlane {
  /** The URL that it is reached by on this machine, with the port really bound. */
  readonly url: string;
  /** Refuses everything from the public with 503 from now on, while workers are still heard. */
  refuse(): void;
  /** Ends requests, connections and the embedded database, in this order. */
  close(): Promise<void>;
}

/** Opens the ledger, migrates it, and serves once it can. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { config, logger } = options;
  const resources = new AsyncDisposableStack();
  try {
    const database = options.database ?? (await openDatabase(config, logger));
    resources.defer(() => database.close());
    const store = await openStoreWhenUp(database.url, options);
    resources.defer(() => store.close());
    const connections = new WorkerConnections();
    resources.defer(() => connections.close());
    const mailer = createMailer(config, logger);
    resources.defer(() => mailer.close());
    const registry = createMetrics();
    const services = await createServices({ ...options, store, connections, mailer, registry });
    const gate = new Gate();
    const app = await createApp(
      {
        logger,
        tls: options.tls,
        trustProxy: [...config.trustProxy],
        baseUrl: config.baseUrl ?? '/',
        version: API_VERSION,
        prepare: (server) => {
          registerHttpMetrics(server, registry, 'control_plane');
          server.addHook('onRequest', async (request) => gate.check(request.url));
        },
      },
      services,
    );
    resources.defer(() => closeServer(app));
    const sweeping = new AbortController();
    const sweeper = sweep(store, logger, sweeping.signal);
    resources.defer(() => sweeper);
    resources.defer(() => sweeping.abort());
    await app.listen({ host: config.listen.host, port: config.listen.port });
    return handleOf(app, config, gate, resources.move(), options.signal);
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

/** A database server that starts at the same moment is waited for. */
function openStoreWhenUp(url: string, options: ControlPlaneOptions): Promise<Store> {
  const { config, logger, signal } = options;
  const open = () =>
    openStore({
      url,
      placement: {
        memoryOvercommit: MEMORY_OVERCOMMIT,
        unreachableMs: WORKER_TIMES.unreachableMs,
        sandboxesPerTenant: config.limits.sandboxesPerTenant,
      },
      onConnectionLost: (err) => logger.debug({ err }, 'idle database connection lost'),
    });
  return retry(open, {
    attempts: DATABASE_ATTEMPTS,
    isTransient: (error) => isServiceError(error, 'database_unavailable'),
    ...(signal === undefined ? {} : { signal }),
  });
}

function handleOf(
  app: HttpServer,
  config: Config,
  gate: Gate,
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
  return { url: publicUrl(undefined, 'https', config, port), refuse: () => gate.shut(), close };
}

/** Keeps the public out while the service ends, but not its workers, whose last words still count. */
class Gate {
  #open = true;

  shut(): void {
    this.#open = false;
  }

  check(url: string): void {
    if (!this.#open && !url.startsWith(INTERNAL_PREFIX)) throw new ServiceError('shutting_down');
  }
}

/** Lets requests under way end, for a while. */
async function closeServer(app: HttpServer): Promise<void> {
  const timer = setTimeout(() => app.server.closeAllConnections(), CLOSE_GRACE_MS);
  try {
    await app.close();
  } finally {
    clearTimeout(timer);
  }
}
