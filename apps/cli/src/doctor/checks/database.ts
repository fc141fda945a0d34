import { type Check, fail, ok } from '../finding.ts';

const TIMEOUT_MS = 5_000;

/** The database server: the configured one answers, or there is an embedded one for this machine. */
export const databaseCheck: Check = {
  name: 'PostgreSQL',
  run: async ({ config }) => {
    if (config.databaseUrl === undefined) {
      return ok('PostgreSQL', 'embedded, under the data directory');
    }
    const { default: pg } = await import('pg');
    const client = new pg.Client({
      connectionString: config.databaseUrl.reveal(),
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
    });
    try {
      await client.connect();
      const { rows } = await client.query<{ server_version: string }>('show server_version');
      return ok('PostgreSQL', `${rows[0]?.server_version}, the server of SVC_DATABASE_URL`);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return fail('PostgreSQL', `does not answer: ${why}`, 'check SVC_DATABASE_URL and the server');
    } finally {
      await client.end().catch(() => undefined);
    }
  },
};
