import { ServiceError } from '@svc/contract';
import { openStore, type Store } from '@svc/store';
import { startTestPostgres, type TestPostgres } from '@svc/store/testing';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { IdempotentCreate, type KeyedCreate } from './idempotent-create.ts';

const NEVER = new AbortController().signal;
const TENANT = 'usr_1';

let postgres: TestPostgres;
let store: Store;
let sql: pg.Client;
let creates: IdempotentCreate<string>;
let made: string[];
let count = 0;

beforeAll(async () => {
  postgres = await startTestPostgres();
  const placement = { unreachableMs: 0, sandboxesPerTenant: 0 };
  store = await openStore({ url: postgres.url, placement });
  sql = new pg.Client({ connectionString: postgres.url });
  await sql.connect();
  await store.tenants.findOrCreate('ada@example.com', TENANT);
});
afterAll(async () => {
  await sql?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  creates = new IdempotentCreate(store.idempotency, 'things.create');
  made = [];
  count += 1;
});
afterEach(() => vi.useRealTimers());

/** A request that creates `subject` at once, and finds nothing that an earlier one has created. */
function request(changes: Partial<KeyedCreate<string>> = {}): KeyedCreate<string> {
  return {
    tenantId: TENANT,
    key: `k${count}`,
    body: { a: 1 },
    subject: `thing_${made.length + 1}`,
    signal: NEVER,
    create: async (subject) => {
      made.push(subject);
      return subject;
    },
    settle: async () => undefined,
    ...changes,
  };
}

const run = (changes?: Partial<KeyedCreate<string>>) => creates.run(request(changes));

/** A creation that waits until the test settles it. */
function slow() {
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<string>();
  const create = async (subject: string) => {
    made.push(subject);
    begun.resolve();
    return end.promise;
  };
  return { create, begun: begun.promise, end };
}

const lockOf = async () =>
  (
    await sql.query<{ seconds: number }>(
      'select extract(epoch from locked_until - now())::float8 as seconds from idempotency_keys where key = $1',
      [`k${count}`],
    )
  ).rows[0]?.seconds;
const setLock = (interval: string) =>
  sql.query(`update idempotency_keys set locked_until = now() + $2::interval where key = $1`, [
    `k${count}`,
    interval,
  ]);

describe('a key', () => {
  test.each([
    ['of 255 characters', 'x'.repeat(255), true],
    ['of 256 characters', 'x'.repeat(256), false],
    ['of the first and the last visible character', '!~', true],
    ['that is empty', '', false],
    ['with a space', 'a b', false],
    ['that begins with a line break', '\na', false],
    ['that ends with a line break', 'a\n', false],
    ['with a letter that is not ASCII', 'aé', false],
  ])('%s', async (_which, key, isValid) => {
    const answer = run({ key });
    if (isValid) expect(await answer).toBe('thing_1');
    else await expect(answer).rejects.toMatchObject({ code: 'idempotency_key_invalid' });
    expect(made).toHaveLength(isValid ? 1 : 0);
  });

  test('stands for one body, in any order of its members', async () => {
    const body = { a: 1, b: { c: [1, 2], d: null } };
    expect(await run({ body })).toBe('thing_1');
    expect(await run({ body: { b: { d: null, c: [1, 2] }, a: 1 } })).toBe('thing_1');
    for (const other of [
      { ...body, a: 2 },
      { a: 1, b: { c: [2, 1], d: null } },
      { a: 1, b: { c: { 0: 1, 1: 2 }, d: null } },
      { a: 1, b: { c: [1, 2] } },
      {},
    ]) {
      await expect(run({ body: other })).rejects.toMatchObject({ code: 'idempotency_key_reused' });
    }
    expect(made).toEqual(['thing_1']);
  });

  test('of another operation or tenant is another key', async () => {
    await store.tenants.findOrCreate('bob@example.com', 'usr_2');
    expect(await run()).toBe('thing_1');
    expect(await run({ tenantId: 'usr_2' })).toBe('thing_2');
    const others = new IdempotentCreate<string>(store.idempotency, 'others.create');
    expect(await others.run(request())).toBe('thing_3');
    expect(await run()).toBe('thing_1');
  });

  test('is forgotten after 24 hours', async () => {
    const age = (interval: string) =>
      sql.query(
        `update idempotency_keys set created_at = created_at - $2::interval where key = $1`,
        [`k${count}`, interval],
      );
    expect(await run()).toBe('thing_1');
    await age('23 hours 59 minutes');
    expect(await run({ body: { a: 1 } })).toBe('thing_1');
    await age('1 minute 1 second');
    expect(await run({ body: { other: true } })).toBe('thing_2');
  });
});

describe('a repeated request', () => {
  test('waits while the first one runs, and gets its answer', async () => {
    const { create, begun, end } = slow();
    const first = run({ create });
    await begun;
    const second = run();
    end.resolve('the answer');
    expect(await Promise.all([first, second])).toEqual(['the answer', 'the answer']);
    expect(made).toEqual(['thing_1']);
  });

  test('is told after a minute to come back later', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { create, begun, end } = slow();
    const first = run({ create });
    await begun;
    let asked = 0;
    const thrice = Promise.withResolvers<void>();
    const claim = store.idempotency.claim.bind(store.idempotency);
    const counted = vi.spyOn(store.idempotency, 'claim').mockImplementation((...given) => {
      asked += 1;
      if (asked === 3) thrice.resolve();
      return claim(...given);
    });
    const second = run();
    second.catch(() => undefined);
    vi.advanceTimersByTime(59_999);
    // It asks again within the minute.
    await thrice.promise;
    vi.advanceTimersByTime(2);
    await expect(second).rejects.toMatchObject({
      code: 'idempotency_in_progress',
      headers: { 'retry-after': '1' },
    });
    counted.mockRestore();
    end.resolve('the answer');
    expect(await first).toBe('the answer');
  });

  test('whose caller leaves does not wait', async () => {
    const { create, begun, end } = slow();
    const first = run({ create });
    await begun;
    const leaving = new AbortController();
    const second = run({ signal: leaving.signal });
    leaving.abort();
    await expect(second).rejects.toMatchObject({ name: 'AbortError' });
    end.resolve('the answer');
    await first;
  });
});

describe('a request that runs', () => {
  test('renews its lock every five seconds until it ends', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { create, begun, end } = slow();
    const first = run({ create });
    await begun;
    expect(await lockOf()).toBeGreaterThan(0);
    expect(await lockOf()).toBeLessThanOrEqual(15);
    await setLock('1 hour');
    vi.advanceTimersByTime(4_999);
    // A statement that comes after one of the timer would see what that one did.
    await store.idempotency.renew(
      { tenantId: TENANT, operation: 'things.create', key: 'another', holder: crypto.randomUUID() },
      1,
    );
    expect(await lockOf()).toBeGreaterThan(1000);
    vi.advanceTimersByTime(1);
    await expect.poll(lockOf).toBeLessThanOrEqual(15);
    end.resolve('the answer');
    await first;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('ends well although a renewal fails', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { create, begun, end } = slow();
    const first = run({ create });
    await begun;
    const renew = vi.spyOn(store.idempotency, 'renew').mockRejectedValue(new Error('injected'));
    vi.advanceTimersByTime(15_000);
    expect(renew).toHaveBeenCalledTimes(3);
    renew.mockRestore();
    end.resolve('the answer');
    expect(await first).toBe('the answer');
  });
});

describe('a request that takes the key over', () => {
  /** A first request that is stalled, and whose lock has expired. */
  async function stalled() {
    const { create, begun, end } = slow();
    const settled: string[] = [];
    const first = run({
      create,
      settle: async (subject) => {
        settled.push(subject);
        return undefined;
      },
    });
    first.catch(() => undefined);
    await begun;
    await setLock('-1 second');
    return { first, end, settled };
  }

  test('answers with what the earlier one has created', async () => {
    const { first, end } = await stalled();
    const asked: string[] = [];
    const settle = async (subject: string) => {
      asked.push(subject);
      return 'found';
    };
    expect(await run({ subject: 'mine', settle })).toBe('found');
    expect(asked).toEqual(['thing_1']);
    expect(await run()).toBe('found');
    expect(made).toEqual(['thing_1']);
    end.resolve('late');
    expect(await first).toBe('late');
    // What a request answers that has lost its key is not stored.
    expect(await run()).toBe('found');
  });

  test('creates a resource of its own when there is none, under a new id', async () => {
    const { first, end } = await stalled();
    const asked: string[] = [];
    const settle = async (subject: string) => {
      asked.push(subject);
      return undefined;
    };
    expect(await run({ subject: 'mine', settle })).toBe('mine');
    expect(made).toEqual(['thing_1', 'mine']);
    expect(asked).toEqual(['thing_1']);
    const { rows } = await sql.query('select subject from idempotency_keys where key = $1', [
      `k${count}`,
    ]);
    expect(rows).toEqual([{ subject: 'mine' }]);
    end.resolve('late');
    await first;
    expect(await run()).toBe('mine');
  });

  test('creates nothing when it lost the key while it looked', async () => {
    const { first, end } = await stalled();
    const looking = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<undefined>();
    const second = run({
      subject: 'second',
      settle: async () => {
        looking.resolve();
        return goOn.promise;
      },
    });
    second.catch(() => undefined);
    await looking.promise;
    await setLock('-1 second');
    expect(await run({ subject: 'third' })).toBe('third');
    goOn.resolve(undefined);
    await expect(second).rejects.toMatchObject({ code: 'idempotency_in_progress' });
    expect(made).toEqual(['thing_1', 'third']);
    end.resolve('late');
    await first;
  });

  test('leaves to the earlier one to say that it is in progress, when that one fails', async () => {
    const { first, end, settled } = await stalled();
    expect(await run({ subject: 'mine' })).toBe('mine');
    const cause = new ServiceError('no_capacity');
    end.reject(cause);
    await expect(first).rejects.toMatchObject({ code: 'idempotency_in_progress', cause });
    expect(settled).toEqual(['thing_1']);
    expect(await run()).toBe('mine');
  });
});

describe('a request that fails', () => {
  const failure = new ServiceError('no_capacity');
  const create = async () => Promise.reject(failure);

  test('frees its key', async () => {
    await expect(run({ create })).rejects.toBe(failure);
    expect(await run({ body: 'another' })).toBe('thing_1');
  });

  test('answers with the resource, when it was created all the same', async () => {
    expect(await run({ create, settle: async (subject) => `found ${subject}` })).toBe(
      'found thing_1',
    );
    expect(await run()).toBe('found thing_1');
  });

  test('keeps its key when it cannot be told what was created, and says why it failed', async () => {
    const settle = async () => Promise.reject(new Error('no database'));
    await expect(run({ create, settle })).rejects.toBe(failure);
    const asked: string[] = [];
    await setLock('-1 second');
    const retry = run({
      subject: 'mine',
      settle: async (subject) => {
        asked.push(subject);
        return undefined;
      },
    });
    expect(await retry).toBe('mine');
    expect(asked).toEqual(['thing_1']);
  });
});

test('an answer that cannot be stored is given all the same, and found again by a retry', async () => {
  const complete = vi
    .spyOn(store.idempotency, 'complete')
    .mockRejectedValueOnce(new Error('injected'));
  expect(await run()).toBe('thing_1');
  complete.mockRestore();
  await setLock('-1 second');
  expect(await run({ settle: async (subject) => subject, subject: 'mine' })).toBe('thing_1');
  expect(made).toEqual(['thing_1']);
});
