import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPgBouncer } from '../test/pgbouncer.ts';
import { startTestPostgres, type TestPostgres } from '../test/test-postgres.ts';
import { connectForLookups, connectForRequests } from './connect.ts';
import { REQUEST_DEADLINES } from './pool.ts';
import type { Schema } from './schema.ts';

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startTestPostgres();
});
afterAll(() => postgres?.[Symbol.asyncDispose]());

type Connect = (url: string) => Kysely<Schema>;
const forLookups: Connect = (url) => connectForLookups(url, REQUEST_DEADLINES, {});
const forFrequent: Connect = (url) => connectForRequests(url, REQUEST_DEADLINES, {}).prepared;

/** Uses connections one after the other, so that every statement has the same one. */
async function over(connect: Connect, url: string, use: (db: Kysely<Schema>) => Promise<void>) {
  const db = connect(url);
  try {
    await use(db);
  } finally {
    await db.destroy();
  }
}

async function echo(db: Kysely<Schema>, value: string): Promise<string | undefined> {
  const { rows } = await sql<{ echo: string }>`select ${value}::text as echo`.execute(db);
  return rows[0]?.echo;
}

/** The texts of the statements that the connection has prepared. */
async function prepared(db: Kysely<Schema>): Promise<string[]> {
  const { rows } = await sql<{ statement: string }>`
    select statement from pg_prepared_statements`.execute(db);
  return rows.map(({ statement }) => statement);
}

test('look-ups are planned once for each connection', async () => {
  await over(forLookups, postgres.url, async (db) => {
    expect([await echo(db, 'a'), await echo(db, 'b')]).toEqual(['a', 'b']);
    expect(await prepared(db)).toEqual(['select $1::text as echo']);
  });
});

test('of the statements for requests, those that ask for it are', async () => {
  const { db, prepared: frequent } = connectForRequests(postgres.url, REQUEST_DEADLINES, {});
  expect(await echo(db, 'a')).toBe('a');
  expect(await prepared(db)).toEqual([]);
  // On the same connection.
  expect(await echo(frequent, 'a')).toBe('a');
  expect(await prepared(db)).toEqual(['select $1::text as echo']);
  await db.destroy();
});

test('nothing is prepared behind PgBouncer, where the next statement may have another session', async () => {
  await using bouncer = await startPgBouncer(postgres.url);
  for (const connect of [forLookups, forFrequent]) {
    await over(connect, bouncer.url, async (db) => {
      expect(await echo(db, 'a')).toBe('a');
      expect(await prepared(db)).toEqual([]);
    });
  }
});

test('a look-up goes on when a migration changes the columns of its result', async () => {
  const direct = new pg.Client({ connectionString: postgres.url });
  await direct.connect();
  await direct.query('create table things as select 1 as id');
  await over(forLookups, postgres.url, async (db) => {
    const find = async () =>
      (await sql`select things.* from things where id = ${1}::int`.execute(db)).rows;
    expect(await find()).toEqual([{ id: 1 }]);
    await direct.query('alter table things add column name text');
    expect(await find()).toEqual([{ id: 1, name: null }]);
    // The connection with the outdated plan is gone: this one has prepared the statement again.
    expect(await find()).toEqual([{ id: 1, name: null }]);
    expect(await prepared(db)).toEqual(['select things.* from things where id = $1::int']);
  });
  await direct.end();
});

test('a look-up that fails for another reason is not tried again', async () => {
  await over(forLookups, postgres.url, async (db) => {
    const divide = (by: number) => sql`select 1 / ${by}::int`.execute(db);
    await expect(divide(0)).rejects.toThrow('division by zero');
    expect((await divide(1)).rows).toEqual([{ '?column?': 1 }]);
    expect(await prepared(db)).toEqual(['select 1 / $1::int']);
  });
});
