import type { Config } from '@svc/config';
import { isServiceError, WORKER_TIMES } from '@svc/contract';
import type { Registry } from '@svc/service-kit';
import { retry, untilAborted } from '@svc/service-kit/concurrency';
import { EmbeddedPostgres, type EmbeddedPostgresEvent, openStore, type Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { createPoolMetrics } from './metrics.ts';

/** With the usual backoff: about half a minute. */
const OPEN_ATTEMPTS = 15;

/** A PostgreSQL database. */
export interface Database {
  readonly url: string;
  close(): Promise<void>;
}

/** Opens the configured server, or an embedded one in the data directory. */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir' | 'backupDir'>,
  logger: FastifyBaseLogger,
): Promise<Database> {
  if (config.databaseUrl !== undefined) {
    return { url: config.databaseUrl.reveal(), close: async () => undefined };
  }
  return EmbeddedPostgres.start({
    dataDirectory: config.dataDir,
    backupDirectory: config.backupDir ?? null,
    onEvent: (event) => logEvent(event, logger),
  });
}

interface LedgerParts {
  readonly logger: FastifyBaseLogger;
  readonly registry: Registry;
  readonly signal: AbortSignal | undefined;
}

/** Opens the ledger. Retries while the server is starting. */
export function openLedger(
  url: string,
  config: Pick<Config, 'limits'>,
  { logger, registry, signal }: LedgerParts,
): Promise<Store> {
  const waits = createPoolMetrics(registry);
  const open = (): Promise<Store> => {
    const opened = openStore({
      url,
      placement: {
        unreachableMs: WORKER_TIMES.unreachableMs,
        sandboxesPerTenant: config.limits.sandboxesPerTenant,
      },
      sessionBytesPerTenant: config.limits.sessionBytesPerTenant,
      workspaceBytesPerTenant: config.limits.workspaceBytes,
      workspacesPerTenant: config.limits.workspacesPerTenant,
      onConnectionLost: (err) => logger.debug({ err }, 'idle database connection lost'),
      onWaited: (pool, seconds) => waits.observe({ pool }, seconds),
    });
    // A migration may wait for long, and the server builds an index on without this process.
    return signal === undefined ? opened : untilAborted(opened, signal);
  };
  return retry(open, {
    attempts: OPEN_ATTEMPTS,
    isTransient: (error) => isServiceError(error, 'database_unavailable'),
    ...(signal === undefined ? {} : { signal }),
  });
}

function logEvent(event: EmbeddedPostgresEvent, logger: FastifyBaseLogger): void {
  switch (event.kind) {
    case 'started':
    case 'adopted':
      logger.info({ pid: event.pid }, `embedded PostgreSQL ${event.kind}`);
      break;
    case 'died':
      logger.error({ pid: event.pid }, 'embedded PostgreSQL died; restarting it');
      break;
    case 'reserve_taken':
      logger.debug('reserved disk for the embedded PostgreSQL');
      break;
    case 'reserve_released':
      logger.error(
        'the disk is full: gave a part of the reserve to the embedded PostgreSQL; make room',
      );
      break;
    case 'reserve_failed':
      logger.warn({ err: event.error }, 'cannot reserve disk for the embedded PostgreSQL');
      break;
    case 'start_failed':
      logger.error({ err: event.error }, 'cannot start embedded PostgreSQL');
      break;
    case 'gave_up':
      logger.fatal(
        { err: event.error },
        'embedded PostgreSQL is permanently down; restart the service',
      );
  }
}
