import { openStore, type Store } from '@svc/store';
import { startTestPostgres, type TestPostgres } from '@svc/store/testing';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { SigningKeys } from './signing-keys.ts';

const SECRET = Buffer.alloc(32, 1);
let postgres: TestPostgres;
let store: Store;
let sql: pg.Client;
let keys: SigningKeys;
/** When the keys were read, in the time of `performance.now()`. */
let reads: number[];

beforeAll(async () => {
  postgres = await startTestPostgres();
  const placement = { unreachableMs: 0, sandboxesPerTenant: 0 };
  store = await openStore({ url: postgres.url, placement });
  sql = new pg.Client({ connectionString: postgres.url });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await sql.query('truncate signing_keys');
  reads = [];
  const counting = {
    youngerThan: (seconds: number) => {
      reads.push(performance.now());
      return store.signingKeys.youngerThan(seconds);
    },
    addUnlessYounger: store.signingKeys.addUnlessYounger.bind(store.signingKeys),
  };
  keys = new SigningKeys(counting, [SECRET]);
});
afterEach(() => vi.useRealTimers());

const age = (interval: string) =>
  sql.query(`update signing_keys set created_at = created_at - interval '${interval}'`);
const unknownId = (index: number) => String(index).padStart(43, '0');
const signingId = async (of = keys) => (await of.signingKey()).kid;

test('the keys are read once for any number of tokens with unknown keys', async () => {
  const ids = Array.from({ length: 100 }, (_, index) => unknownId(index));
  const found = await Promise.all(ids.map((id) => keys.verificationKey(id)));
  expect(found.every((key) => key === undefined)).toBe(true);
  expect(reads).toHaveLength(1);
});

test('the keys are read for unknown keys again, but not more than once a second', async () => {
  for (let index = 0; index < 3; index += 1) await keys.verificationKey(unknownId(index));
  expect(reads).toHaveLength(3);
  // A timer may be late, but not early, apart from its rounding.
  const pauses = reads.slice(1).map((at, index) => at - (reads[index] ?? 0));
  for (const pause of pauses) expect(pause).toBeGreaterThan(990);
});

test.each([
  ['too short', '0'.repeat(42)],
  ['too long', '0'.repeat(44)],
  ['with another character', `${'0'.repeat(42)}+`],
  ['with another character first', `+${'0'.repeat(43)}`],
  ['of two lines', `${'0'.repeat(43)}\n${'0'.repeat(43)}`],
])('the keys are not read for an id that is %s', async (_problem, id) => {
  expect(await keys.verificationKey(id)).toBeUndefined();
  expect(reads).toEqual([]);
});

test('the keys are not read for tokens with a known key', async () => {
  const kid = await signingId();
  const read = reads.length;
  for (let token = 0; token < 3; token += 1) {
    expect(await keys.verificationKey(kid)).toBeDefined();
  }
  expect(reads).toHaveLength(read);
});

test('keys that another secret encrypted are not used, and another one is added', async () => {
  const mine = await signingId();
  const theirs = await signingId(new SigningKeys(store.signingKeys, [Buffer.alloc(32, 2)]));
  expect(theirs).not.toBe(mine);
  expect(await keys.verificationKey(theirs)).toBeUndefined();
  expect(await keys.verificationKey(mine)).toBeDefined();
  expect(await signingId()).toBe(mine);
});

test('a key is used only under its own id', async () => {
  const first = await signingId(new SigningKeys(store.signingKeys, [SECRET]));
  await age('30 days 1 minute');
  const second = await signingId(new SigningKeys(store.signingKeys, [SECRET]));
  await sql.query(
    'update signing_keys mine set sealed = other.sealed from signing_keys other where other.kid <> mine.kid',
  );
  expect(await keys.verificationKey(first)).toBeUndefined();
  expect([first, second]).not.toContain(await signingId());
});

test('the keys are read again after ten minutes, to sign with the newest', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  vi.advanceTimersByTime(3_600_000);
  const first = await signingId();
  const read = reads.length;
  await age('30 days 1 minute');
  const second = await signingId(new SigningKeys(store.signingKeys, [SECRET]));
  expect(second).not.toBe(first);
  vi.advanceTimersByTime(599_999);
  expect(await signingId()).toBe(first);
  expect(reads).toHaveLength(read);
  vi.advanceTimersByTime(1);
  expect(await signingId()).toBe(second);
  expect(reads).toHaveLength(read + 1);
});

test('a key signs until day 30, also between two reads', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const first = await signingId(new SigningKeys(store.signingKeys, [SECRET]));
  await age('29 days 23 hours 55 minutes');
  expect(await signingId()).toBe(first);
  await age('5 minutes');
  vi.advanceTimersByTime(200_000);
  expect(await signingId()).toBe(first);
  expect(reads).toHaveLength(1);
  vi.advanceTimersByTime(100_001);
  expect(await signingId()).not.toBe(first);
  expect(await keys.verificationKey(first)).toBeDefined();
});

test('nothing signs when no key can be opened, after three tries to add one', async () => {
  const sealed = Buffer.from('not sealed');
  const tries: (readonly string[])[] = [];
  const hostile = new SigningKeys(
    {
      youngerThan: async () => [{ kid: 'k', sealed, created_at: new Date(), age_seconds: 1 }],
      addUnlessYounger: async (_key, _seconds, unusable) => {
        tries.push(unusable);
        return false;
      },
    },
    [SECRET],
  );
  await expect(hostile.signingKey()).rejects.toThrow();
  expect(tries).toEqual([['k'], ['k'], ['k']]);
});
