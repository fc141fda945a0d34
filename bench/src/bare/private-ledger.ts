import { EmbeddedPostgres, openStore, type Store } from '@svc/store';
import pg from 'pg';

/** A ledger of its own, to fill with any amount of usage. */
export interface PrivateLedger extends AsyncDisposable {
  readonly store: Store;
  readonly url: string;
  readonly sql: pg.Client;
}

/** Starts a PostgreSQL server with an empty ledger in `directory`. Disposing of it stops the server. */
export async function startLedger(directory: string): Promise<PrivateLedger> {
  const server = await startServer(directory);
  const store = await openStore({
    url: server.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1_000 },
  });
  const sql = new pg.Client({ connectionString: server.url });
  await sql.connect();
  await sql.query('create extension pg_stat_statements');
  return {
    store,
    url: server.url,
    sql,
    [Symbol.asyncDispose]: async () => {
      await sql.end();
      await store.close();
      await server.close();
    },
  };
}

/** Starts a server that measures its statements, which it can only be told before it starts. */
async function startServer(directory: string): Promise<EmbeddedPostgres> {
  const first = await EmbeddedPostgres.start({ dataDirectory: directory });
  const sql = new pg.Client({ connectionString: first.url });
  await sql.connect();
  await sql.query('alter system set shared_preload_libraries = pg_stat_statements');
  await sql.query('alter system set pg_stat_statements.track_planning = on');
  await sql.end();
  await first.close();
  return EmbeddedPostgres.start({ dataDirectory: directory });
}

/** The time in ms for which the database planned and executed statements that name `table`, so far. */
export async function databaseMs({ sql }: PrivateLedger, table: string): Promise<number> {
  const { rows } = await sql.query<{ ms: number }>(
    `select coalesce(sum(total_plan_time + total_exec_time), 0) as ms
     from pg_stat_statements where query like '%' || $1 || '%'`,
    [table],
  );
  return rows[0]?.ms ?? 0;
}

/** Adds tenants `usr_1` to `usr_<count>`. */
export async function addTenants({ sql }: PrivateLedger, count: number): Promise<void> {
  await sql.query(
    `insert into tenants (tenant_id, email)
     select 'usr_' || n, 'bench' || n || '@example.com' from generate_series(1, $1::int) n`,
    [count],
  );
}
