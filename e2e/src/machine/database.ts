import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { orIfAbsent } from './absent.ts';

const CONNECT_MS = 10_000;

/** The embedded database server of a data directory, as its own pid file tells. */
export interface DatabaseServer {
  readonly pid: number;
  readonly socketDirectory: string;
}

/** The database server of a data directory; undefined when none runs or the file is not complete yet. */
export async function databaseOf(dataDir: string): Promise<DatabaseServer | undefined> {
  const text = await orIfAbsent(readFile(`${dataDir}/postgres/postmaster.pid`, 'utf8'), '');
  // https://www.postgresql.org/docs/current/storage-file-layout.html
  const [pid, , , , socketDirectory] = text.split('\n');
  if (!socketDirectory) return undefined;
  return { pid: Number(pid), socketDirectory };
}

/** Asks the ledger itself, past the service. */
export async function queryLedger<Row extends pg.QueryResultRow>(
  dataDir: string,
  statement: string,
): Promise<Row[]> {
  const server = await databaseOf(dataDir);
  if (server === undefined) throw new Error(`no database runs in ${dataDir}`);
  const client = new pg.Client({
    host: server.socketDirectory,
    user: 'svc',
    database: 'postgres',
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

/** What the ledger holds for sandboxes that are not destroyed, in its rows and in its counters. */
export interface LedgerUse {
  readonly active: string[];
  readonly countedSandboxes: number;
  readonly reservedMemoryMib: number;
}

/** Reads {@link LedgerUse}. All of it belongs to active sandboxes: without them, all is zero. */
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
