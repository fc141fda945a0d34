import { databaseServer } from '@svc/service-driver';
import pg from 'pg';

const CONNECT_MS = 10_000;

/** Queries the ledger directly, bypassing the service. */
export async function queryLedger<Row extends pg.QueryResultRow>(
  dataDir: string,
  statement: string,
): Promise<Row[]> {
  const server = await databaseServer(dataDir);
  if (server === undefined) throw new Error(`no database runs in ${dataDir}`);
  const client = new pg.Client({
    connectionString: server.url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
  });
  await client.connect();
  try {
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end();
  }
}

/** Sandboxes that are not destroyed, according to the ledger's rows and to its counters. */
export interface LedgerUse {
  readonly active: string[];
  readonly countedSandboxes: number;
  readonly reservedMemoryMib: number;
}

/** Reads {@link LedgerUse}. Without active sandboxes both counters are zero. */
export async function ledgerUse(dataDir: string): Promise<LedgerUse> {
  const rows = await queryLedger<{ active: string[]; counted: number; reserved: number }>(
    dataDir,
    `select
       array(select vm_id || ' ' || state from sandboxes where state <> 'destroyed' order by 1) as active,
       (select coalesce(sum(active_sandboxes), 0)::int from tenants) as counted,
       (select coalesce(sum(reserved_memory_mib), 0)::int from workers) as reserved`,
  );
  const { active = [], counted = 0, reserved = 0 } = rows[0] ?? {};
  return { active, countedSandboxes: counted, reservedMemoryMib: reserved };
}
