import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../test/test-postgres.ts';
import { openStore, type Store } from '../store.ts';

const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 1 };
const MONTH = 30 * 86_400;

let postgres: TestPostgres;
let sql: pg.Client;
let stores: Store[];

beforeAll(async () => {
  postgres = await startTestPostgres();
  stores = await Promise.all(
    Array.from({ length: 3 }, () => openStore({ url: postgres.url, placement: PLACEMENT })),
  );
  sql = new pg.Client({ connectionString: postgres.url });
  await sql.connect();
});
beforeEach(() => sql.query('truncate signing_keys'));
afterAll(async () => {
  await sql?.end();
  await Promise.all((stores ?? []).map((store) => store.close()));
  await postgres?.[Symbol.asyncDispose]();
});

const newKey = () => ({ kid: randomUUID(), sealed: Buffer.from('sealed') });

/** Every store adds keys at the same time. Returns how many were added. */
async function race(unusable: readonly string[] = []): Promise<number> {
  const added = await Promise.all(
    [...stores, ...stores].map(({ signingKeys }) =>
      signingKeys.addUnlessYounger(newKey(), MONTH, unusable),
    ),
  );
  return added.filter(Boolean).length;
}

const kids = async (seconds = MONTH) =>
  ((await stores[0]?.signingKeys.youngerThan(seconds)) ?? []).map(({ kid }) => kid);
const age = (interval: string) =>
  sql.query(`update signing_keys set created_at = created_at - interval '${interval}'`);

test('of many that find no young key, one adds a key; while it is young, none does', async () => {
  expect(await race()).toBe(1);
  expect(await race()).toBe(0);
  await age('29 days 23 hours');
  expect(await race()).toBe(0);
  await age('1 hour');
  expect(await race()).toBe(1);
  expect(await kids()).toHaveLength(1);
  expect(await kids(2 * MONTH)).toHaveLength(2);
});

test('a young key that cannot be used does not prevent another one', async () => {
  await race();
  const unusable = await kids();
  expect(await race(unusable)).toBe(1);
  expect(await race(unusable)).toBe(0);
});

test('keys are listed from the newest, with their age, until they are removed', async () => {
  await race();
  const [older] = await kids();
  await age('31 days');
  await race();
  const listed = (await stores[1]?.signingKeys.youngerThan(2 * MONTH)) ?? [];
  expect(listed[1]?.kid).toBe(older);
  expect(listed[0]?.age_seconds).toBeLessThan(60);
  expect(listed[1]?.age_seconds).toBeGreaterThan(31 * 86_400);
  await stores[2]?.signingKeys.removeOlder(32 * 86_400, 100);
  expect(await kids(2 * MONTH)).toHaveLength(2);
  await stores[2]?.signingKeys.removeOlder(31 * 86_400, 100);
  expect(await kids(2 * MONTH)).toEqual([listed[0]?.kid]);
});
