import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { migrationsUntil } from '../test/migrations-until.ts';
import { startTestServer, type TestServer } from '../test/test-server.ts';
import { connect } from './connect.ts';
import { migrate } from './migrate.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import { MIGRATION_DEADLINES, REQUEST_DEADLINES } from './pool.ts';
import type { Schema } from './schema.ts';

/** The last migration of an earlier version. */
const BEFORE = migrationsUntil('0056-components');
const ALSO_INDEXED = { '9001-ids': { indexes: [{ name: 'more_ids', on: 'more (id)' }] } };
const MORE_IDS = { text: 'CREATE INDEX more_ids ON public.more USING btree (id)', valid: true };
const run = (statement: string) => async (on: Kysely<unknown>) => {
  await sql.raw(statement).execute(on);
};
const BASE: Readonly<Record<string, SchemaMigration>> = {
  '0001-more': { up: run('create table more (id int); create table other (id int)') },
};

let postgres: TestServer;
/** Of a control plane that starts. */
let starting: Kysely<Schema>;
/** Of one that runs. */
let running: Kysely<Schema>;

beforeAll(async () => {
  postgres = await startTestServer();
  starting = connect(postgres.url, MIGRATION_DEADLINES);
  running = connect(postgres.url, REQUEST_DEADLINES);
});
afterAll(async () => {
  await running?.destroy();
  await starting?.destroy();
  await postgres?.[Symbol.asyncDispose]();
});
const clear = () => sql.raw('drop schema public cascade; create schema public').execute(starting);
beforeEach(clear);

async function indexes() {
  const { rows } = await sql<{ text: string; valid: boolean }>`
    select pg_get_indexdef(indexrelid) as text, indisvalid as valid
    from pg_index join pg_class on pg_class.oid = indexrelid
    where relnamespace = 'public'::regnamespace order by text`.execute(running);
  return rows;
}

async function columns() {
  const { rows } = await sql`
    select table_name, column_name, data_type, column_default, is_nullable
    from information_schema.columns where table_schema = 'public' order by 1, 2`.execute(running);
  return rows;
}

/** Reads a table in a snapshot for as long as `use` takes, as `svc billing verify` and pg_dump do. */
async function whileRead(table: string, use: () => Promise<void>): Promise<void> {
  const reader = connect(postgres.url, MIGRATION_DEADLINES);
  await reader
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (reading) => {
      await sql`select from ${sql.table(table)}`.execute(reading);
      await use();
    });
  await reader.destroy();
}

/** Settles when a statement that begins so waits for a lock. */
async function untilWaiting(statement: string): Promise<void> {
  const find = () =>
    sql`
      select from pg_stat_activity
      where wait_event_type = 'Lock' and query like ${`${statement}%`}`.execute(running);
  await expect.poll(async () => (await find()).rows.length).toBe(1);
}

test('an upgraded database has what a new one has', async () => {
  await migrate(starting, BEFORE);
  await migrate(starting);
  const upgraded = [await indexes(), await columns()];
  await clear();
  await migrate(starting);
  expect(upgraded).toEqual([await indexes(), await columns()]);
});

test('a table that somebody reads for long is kept from nobody else', async () => {
  await migrate(starting, BASE);
  const wider = { ...BASE, '0002-wider': { up: run('alter table more add column x int') } };
  let migrated: Promise<void> | undefined;
  await whileRead('more', async () => {
    migrated = migrate(starting, wider);
    await untilWaiting('alter table more');
    // Fails when it waits for longer than a request does.
    await sql`select from more`.execute(running);
    // It is tried again, and gives way again.
    await untilWaiting('alter table more');
    await sql`select from more`.execute(running);
  });
  await migrated;
  await sql`select x from more`.execute(running);
});

test('while one migration waits for its table, those before it hold none', async () => {
  await migrate(starting, BASE);
  const wider = {
    ...BASE,
    '0002-other': { up: run('alter table other add column x int') },
    '0003-wider': { up: run('alter table more add column x int') },
  };
  let migrated: Promise<void> | undefined;
  await whileRead('more', async () => {
    migrated = migrate(starting, wider);
    await untilWaiting('alter table more');
    await sql.raw('select x from other for update nowait').execute(running);
  });
  await migrated;
});

test('an index is built while others write and read, also in snapshots', async () => {
  await migrate(starting, BASE);
  const indexed = { ...BASE, ...ALSO_INDEXED };
  let migrated: Promise<void> | undefined;
  await whileRead('more', async () => {
    migrated = migrate(starting, indexed);
    await untilWaiting('create index concurrently');
    await sql`insert into more values (1)`.execute(running);
    await sql`select from more`.execute(running);
  });
  await migrated;
  expect(await indexes()).toContainEqual(MORE_IDS);
});

test('what has run before the process ended is not run again, and an unfinished index is built anew', async () => {
  await migrate(starting, BASE);
  const failing: Readonly<Record<string, SchemaMigration>> = {
    ...BASE,
    '0002-wider': { up: run('alter table more add column x int') },
    '0003-broken': { up: run('alter table other add column x int; select 1 / 0') },
  };
  await expect(migrate(starting, failing)).rejects.toThrow('division by zero');
  const mended = {
    ...failing,
    '0003-broken': { up: run('alter table other add column x int') },
    ...ALSO_INDEXED,
  };
  let migrated: Promise<unknown> | undefined;
  await whileRead('more', async () => {
    migrated = migrate(starting, mended).catch((error: unknown) => error);
    await untilWaiting('create index concurrently');
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where query like 'create index concurrently%'`.execute(running);
    expect(await migrated).toMatchObject({ code: 'database_unavailable' });
  });
  expect(await indexes()).toContainEqual({ ...MORE_IDS, valid: false });
  await migrate(starting, mended);
  expect(await indexes()).toContainEqual(MORE_IDS);
  await sql`select more.x, other.x from more, other`.execute(running);
});

test('an index that an earlier version built with its migration is not built again', async () => {
  await migrate(starting, BASE);
  await sql.raw('create index more_ids on more (id)').execute(starting);
  await sql`insert into kysely_migration values ('9001-ids', now())`.execute(starting);
  const { rows: before } = await sql`select 'more_ids'::regclass::oid as id`.execute(starting);
  await migrate(starting, { ...BASE, ...ALSO_INDEXED });
  const { rows: after } = await sql`select 'more_ids'::regclass::oid as id`.execute(starting);
  expect(after).toEqual(before);
  const { rows } = await sql`
    select from kysely_migration where name = '9001-ids indexes'`.execute(running);
  expect(rows).toHaveLength(1);
});

test('control planes that start at once build an index once', async () => {
  await migrate(starting, BASE);
  const others = Array.from({ length: 4 }, () => connect(postgres.url, MIGRATION_DEADLINES));
  const indexed = { ...BASE, ...ALSO_INDEXED };
  await Promise.all(others.map((db) => migrate(db, indexed)));
  await Promise.all(others.map((db) => db.destroy()));
  expect(await indexes()).toContainEqual(MORE_IDS);
  const { rows } = await sql`
    select from kysely_migration where name like '9001%' having count(*) = 2`.execute(running);
  expect(rows).toHaveLength(1);
});
