import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrationsUntil } from '../test/migrations-until.ts';
import { type PgBouncer, startPgBouncer } from '../test/pgbouncer.ts';
import { startTestServer, type TestServer } from '../test/test-server.ts';
import { connect, connectForRequests } from './connect.ts';
import { migrate } from './migrate.ts';
import { MIGRATION_DEADLINES, REQUEST_DEADLINES } from './pool.ts';
import type { Schema } from './schema.ts';
import { openStore, type Store } from './store.ts';

const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 100 };

let postgres: TestServer;
let bouncer: PgBouncer;
/** The server itself. */
let direct: pg.Client;

beforeAll(async () => {
  postgres = await startTestServer();
  bouncer = await startPgBouncer(postgres.url);
  direct = new pg.Client({ connectionString: postgres.url });
  await direct.connect();
});
afterAll(async () => {
  await direct?.end();
  await bouncer?.[Symbol.asyncDispose]();
  await postgres?.[Symbol.asyncDispose]();
});

async function withDatabase(use: (db: Kysely<Schema>) => Promise<void>): Promise<void> {
  const { db } = connectForRequests(bouncer.url, REQUEST_DEADLINES, {});
  try {
    await use(db);
  } finally {
    await db.destroy();
  }
}

async function startFromEarlier(): Promise<void> {
  await direct.query('drop schema public cascade; create schema public');
  const db = connect(postgres.url, MIGRATION_DEADLINES);
  await migrate(db, migrationsUntil('0056-components'));
  await db.destroy();
}

test.each(['an empty', 'an earlier'])(
  'several control planes migrate %s database at once, and leave no lock',
  async (which) => {
    if (which === 'an earlier') await startFromEarlier();
    const opened: Store[] = await Promise.all(
      Array.from({ length: 6 }, () => openStore({ url: bouncer.url, placement: PLACEMENT })),
    );
    await Promise.all(opened.map((store) => store.ping()));
    await Promise.all(opened.map((store) => store.close()));
    const locks = await direct.query(`select from pg_locks where locktype = 'advisory'`);
    expect(locks.rowCount).toBe(0);
    const { rows } = await direct.query<{ name: string; count: string }>(
      'select name, count(*) from kysely_migration group by name having count(*) > 1',
    );
    expect(rows).toEqual([]);
    const invalid = await direct.query('select from pg_index where not indisvalid');
    expect(invalid.rowCount).toBe(0);
  },
);

test('a transaction has the deadlines of its pool, and leaves none to the session', async () => {
  const names = ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'];
  await withDatabase(async (db) => {
    const within = async (run: Kysely<Schema>) => {
      const { rows } = await sql<{ name: string; setting: string }>`
        select name, setting from pg_settings where name = any(${names}::text[])`.execute(run);
      return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
    };
    const deadlines = {
      lock_timeout: '8000',
      statement_timeout: '10000',
      idle_in_transaction_session_timeout: '12000',
    };
    expect(await db.transaction().execute(within)).toEqual(deadlines);
    const repeatable = db.transaction().setIsolationLevel('repeatable read');
    expect(await repeatable.execute(within)).toEqual(deadlines);
    // More often than there are sessions.
    for (let time = 0; time < 10; time += 1) {
      expect(await within(db)).toEqual(Object.fromEntries(names.map((name) => [name, '0'])));
    }
  });
});

test('transactions that lock the same take turns, more of them than there are sessions', async () => {
  await direct.query('create table counter as select 0 as n');
  await withDatabase(async (db) => {
    const add = () =>
      db.transaction().execute(async (transaction) => {
        await sql`select pg_advisory_xact_lock(7)`.execute(transaction);
        const { rows } = await sql<{ n: number }>`select n from counter`.execute(transaction);
        await sql`update counter set n = ${(rows[0]?.n ?? 0) + 1}`.execute(transaction);
      });
    await Promise.all(Array.from({ length: 40 }, add));
  });
  expect((await direct.query('select n from counter')).rows).toEqual([{ n: 40 }]);
});
