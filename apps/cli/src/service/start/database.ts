import type { Config } from '@svc/service-kit/config';
import type { Logger } from '@svc/service-kit/logging';

/** The database of a service: where it is, and its end if it is the service's own. */
export interface Database {
  readonly url: string;
  readonly kind: 'embedded' | 'external';
  close(): Promise<void>;
}

/** The configured database server, else an embedded one under the data directory. */
export async function openDatabase(config: Config, logger: Logger): Promise<Database> {
  if (config.databaseUrl !== undefined) {
    return { url: config.databaseUrl.reveal(), kind: 'external', close: async () => undefined };
  }
  const { EmbeddedPostgres } = await import('@svc/store');
  const log = logger.child({ component: 'postgresql' });
  const postgres = await EmbeddedPostgres.start({
    dataDirectory: config.dataDir,
    onEvent: (event) => {
      if (event.kind === 'started' || event.kind === 'adopted') log.info(event, event.kind);
      else log.error('error' in event ? { err: event.error } : event, event.kind);
    },
  });
  return { url: postgres.url, kind: 'embedded', close: () => postgres.close() };
}
