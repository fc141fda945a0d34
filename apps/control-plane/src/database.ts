import type { Config } from '@svc/service-kit';
import { EmbeddedPostgres, type EmbeddedPostgresEvent } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';

/** Where the ledger is. */
export interface Database {
  readonly url: string;
  close(): Promise<void>;
}

/** The configured server, or else one of the service's own in the data directory. */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
  logger: FastifyBaseLogger,
): Promise<Database> {
  if (config.databaseUrl !== undefined) {
    return { url: config.databaseUrl.reveal(), close: async () => undefined };
  }
  return EmbeddedPostgres.start({
    dataDirectory: config.dataDir,
    onEvent: (event) => logEvent(event, logger),
  });
}

function logEvent(event: EmbeddedPostgresEvent, logger: FastifyBaseLogger): void {
  switch (event.kind) {
    case 'started':
    case 'adopted':
      logger.info({ pid: event.pid }, `embedded PostgreSQL ${event.kind}`);
      break;
    case 'died':
      logger.error({ pid: event.pid }, 'embedded PostgreSQL died; starting it again');
      break;
    case 'start_failed':
      logger.error({ err: event.error }, 'embedded PostgreSQL did not start');
      break;
    case 'gave_up':
      logger.fatal({ err: event.error }, 'embedded PostgreSQL stays down; restart the service');
  }
}
