import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestPostgres, type TestPostgres } from '../../../test/test-postgres.ts';
import type { Schema } from '../../schema.ts';
import { openStore, type Store } from '../../store.ts';
import { chooseWorker } from './choose-worker.ts';

const WORKERS = 10_000;
const MEMORY_MIB = 8192;
const NEED = { template: 'standard', size: { vcpu: 1, memory_mib: 512 } };
const RULES = { unreachableMs: 30_000, sandboxesPerTenant: 1_000_000 };
/** Compiles statements, and runs none. */
const COMPILER = new Kysely<Schema>({
  dialect: new PostgresDialect({ pool: async () => Promise.reject(new Error('unused')) }),
});

interface PlanNode {
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

let postgres: TestPostgres;
/** Of two control planes. */
let stores: Store[];
let client: pg.Client;
let made = 0;

beforeAll(async () => {
  postgres = await startTestPostgres();
  const open = () => openStore({ url: postgres.url, placement: RULES });
  stores = [await open(), await open()];
  client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const db = new Kysely<Schema>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: postgres.url, max: 1 }) }),
  });
  await insertTenants(db, 'usr_1', 'usr_2');
  await db.destroy();
});
afterAll(async () => {
  await client?.end();
  await Promise.all((stores ?? []).map((store) => store.close()));
  await postgres?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await client.query('truncate workers, sandboxes cascade');
  await client.query('update tenants set active_sandboxes = 0');
});

/** Adds workers `w1` to `w<count>`. */
async function addFleet(count: number, memoryMib = MEMORY_MIB): Promise<void> {
  await client.query(
    `insert into workers (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib, templates)
     select 'w' || number, 'https://127.0.0.1:1', repeat('pem', 500), '0', 8, $2::int, 65536,
       '[{"template": "standard", "ready": true}, {"template": "browser", "ready": false}]'
     from generate_series(1, $1) as number`,
    [count, memoryMib],
  );
  await client.query('analyze workers');
}

/** Rows of tables that PostgreSQL reads to choose a worker. */
async function rowsRead(): Promise<number> {
  const statement = sql`with ${chooseWorker(NEED, RULES, [], sql`true`)} select * from chosen`;
  const { sql: text, parameters } = statement.compile(COMPILER);
  await client.query('begin');
  const explained = await client.query(`explain (analyze, format json) ${text}`, [...parameters]);
  await client.query('rollback');
  const count = (node: PlanNode): number => {
    const own = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
    const below = (node.Plans ?? []).reduce((sum, child) => sum + count(child), 0);
    return below + (node['Relation Name'] === undefined ? 0 : own * node['Actual Loops']);
  };
  return count(explained.rows[0]['QUERY PLAN'][0].Plan);
}

/** Places so many sandboxes on two control planes, a few at a time. Returns how many found room. */
async function placeMany(count: number): Promise<number> {
  let placed = 0;
  let left = count;
  const place = async (lane: number) => {
    while (left > 0) {
      left -= 1;
      made += 1;
      const answer = await stores[lane % 2]?.sandboxes.reserve({
        vmId: `vm_${made}`,
        tenantId: `usr_${(lane % 2) + 1}`,
        placement: { ...NEED, idle_timeout_seconds: 60, max_lifetime_seconds: 60 },
        metadata: {},
        persistenceUrl: undefined,
      });
      if (answer?.placed !== undefined) placed += 1;
      else expect(answer).toEqual({ refusal: 'no_capacity' });
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, lane) => place(lane)));
  return placed;
}

test('a choice reads as much of 10,000 workers as of 1,000', async () => {
  await addFleet(1_000);
  const ofFew = await rowsRead();
  await client.query('truncate workers cascade');
  await addFleet(WORKERS);
  const ofMany = await rowsRead();
  expect(ofMany).toBeLessThan(100);
  expect(ofMany).toBeLessThanOrEqual(ofFew + 10);
});

test('workers that cannot be chosen do not hide the only one that can', async () => {
  await addFleet(1_000);
  await client.query(`update workers set heartbeat_at = now() - interval '1 hour'
    where worker_id <> 'w500'`);
  expect(await placeMany(1)).toBe(1);
  const { rows } = await client.query('select worker_id from sandboxes');
  expect(rows).toEqual([{ worker_id: 'w500' }]);
});

test('sandboxes are spread evenly', async () => {
  await addFleet(200);
  expect(await placeMany(1_000)).toBe(1_000);
  const { rows } = await client.query(
    'select max(reserved_memory_mib / 512)::int as most from workers',
  );
  // Of 400 simulated runs, the fullest worker got 9 in two, and never more. Random placement puts about 12 on it.
  expect(rows[0].most).toBeLessThanOrEqual(10);
});

test('no memory is promised twice when two control planes fill the fleet', async () => {
  await addFleet(40, 1100);
  expect(await placeMany(120)).toBe(80);
  const { rows } = await client.query(
    `select distinct reserved_memory_mib as promised,
       (select sum(memory_mib) from sandboxes where sandboxes.worker_id = workers.worker_id)::int as used
     from workers`,
  );
  expect(rows).toEqual([{ promised: 1024, used: 1024 }]);
});
