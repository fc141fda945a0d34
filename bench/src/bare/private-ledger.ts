import { EmbeddedPostgres, openStore, type Store } from '@svc/store';
import pg from 'pg';

/** A ledger of its own, to fill with any amount of usage. */
export interface PrivateLedger extends AsyncDisposable {
  readonly store: Store;
  readonly sql: pg.Client;
}

/** Starts a PostgreSQL server with an empty ledger in `directory`. Disposing of it stops the server. */
export async function startLedger(directory: string): Promise<PrivateLedger> {
  const server = await EmbeddedPostgres.start({ dataDirectory: directory });
  const store = await openStore({
    url: server.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1_000 },
  });
  const sql = new pg.Client({ connectionString: server.url });
  await sql.connect();
  return {
    store,
    sql,
    [Symbol.asyncDispose]: async () => {
      await sql.end();
      await store.close();
      await server.close();
    },
  };
}

/** Adds tenants `usr_1` to `usr_<count>`. */
export async function addTenants({ sql }: PrivateLedger, count: number): Promise<void> {
  await sql.query(
    `insert into tenants (tenant_id, email)
     select 'usr_' || n, 'bench' || n || '@example.com' from generate_series(1, $1::int) n`,
    [count],
  );
}
