import { openStore, type Store, type StoreOptions } from '@svc/store';
import { startTestPostgres } from '@svc/store/testing';
import pg from 'pg';

/** A ledger with one account, `t`, and a connection for what only tests may do. */
export interface TestLedger extends AsyncDisposable {
  readonly store: Store;
  readonly sql: pg.Client;
}

/** Opens a ledger in a new database. Disposing of it removes the database. */
export async function startTestLedger(
  quotas: Pick<StoreOptions, 'sessionBytesPerTenant'> = {},
): Promise<TestLedger> {
  const postgres = await startTestPostgres();
  const placement = { unreachableMs: 30_000, sandboxesPerTenant: 1 };
  const store = await openStore({ url: postgres.url, placement, ...quotas });
  const sql = new pg.Client({ connectionString: postgres.url });
  // The server ends the connection when it stops.
  sql.on('error', () => undefined);
  await sql.connect();
  await sql.query(`insert into tenants (tenant_id, email) values ('t', 'a@b.c')`);
  return {
    store,
    sql,
    async [Symbol.asyncDispose]() {
      await sql.end();
      await store.close();
      await postgres[Symbol.asyncDispose]();
    },
  };
}
