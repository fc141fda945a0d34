import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/** What an operator should know of the database server. */
export interface ServerState {
  readonly version: string;
  /** The server's clock, which decides every deadline of the service. */
  readonly now: Date;
  /** Whether it takes no writes: it is a standby, or was made read-only. */
  readonly readOnly: boolean;
  /** Connections of clients, and how many it takes. */
  readonly connections: number;
  readonly maxConnections: number;
  /** Whether commits wait for a synchronous standby and none is connected. */
  readonly waitsForStandby: boolean;
}

/** The state of the database server. */
export class ServerStateRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** https://www.postgresql.org/docs/current/monitoring-stats.html describes the views. */
  async read(): Promise<ServerState> {
    const { rows } = await sql<ServerState>`
      select current_setting('server_version') as version,
        clock_timestamp() as now,
        pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as "readOnly",
        (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
        current_setting('max_connections')::int as "maxConnections",
        current_setting('synchronous_standby_names') <> ''
          and current_setting('synchronous_commit') <> 'local'
          and not exists (select from pg_stat_replication) as "waitsForStandby"`.execute(this.#db);
    const [state] = rows;
    if (state === undefined) throw new Error('the database server does not describe itself');
    return state;
  }
}
