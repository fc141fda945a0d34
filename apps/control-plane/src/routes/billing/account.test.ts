import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start({ SVC_SIGNUP_GRANT_CENTS: '750' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());

const get = (path: string, key: string) => harness.call('GET', `/v1/billing/${path}`, { key });
const setAutoTopup = (key: string, json: unknown) =>
  harness.call('PUT', '/v1/billing/auto-topup', { key, json });

test('a new account has its credit, which signing in again does not add to', async () => {
  const { token, email } = await harness.signUp();
  await harness.signUp(email);
  expect((await get('balance', token)).body).toEqual({ credit_balance: 750 });
  expect((await get('transactions', token)).body).toEqual({
    transactions: [
      {
        id: expect.stringMatching(/^txn_[0-9a-f]{32}$/),
        amount: 750,
        description: 'Credit for new accounts',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    ],
  });
});

test('transactions are paged, newest first, and those of the caller only', async () => {
  const { token, tenantId } = await harness.signUp();
  await harness.sql.query(
    `insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
     select $1, -n, 'usage', 'n' || n, 'Usage' from generate_series(1, 24) as n`,
    [tenantId],
  );
  const amounts = async (query: string) => {
    const { body } = await get(`transactions${query}`, token);
    return (body.transactions as { amount: number }[]).map(({ amount }) => amount);
  };
  expect(await amounts('')).toEqual(Array.from({ length: 20 }, (_, n) => n - 24));
  expect(await amounts('?offset=20')).toEqual([-4, -3, -2, -1, 750]);
  expect(await amounts('?limit=1&offset=23')).toEqual([-1]);
  expect(await amounts('?limit=100&offset=25')).toEqual([]);
  expect((await get('balance', token)).body).toEqual({ credit_balance: 750 - 300 });
});

test.each([['limit=0'], ['limit=101'], ['limit=x'], ['limit=1.5'], ['offset=-1'], ['offset=x']])(
  'transactions?%s is 400',
  async (query) => {
    const { token } = await harness.signUp();
    expect(await get(`transactions?${query}`, token)).toMatchObject({
      status: 400,
      body: { code: 'validation_failed' },
    });
  },
);

test('settings of automatic top-ups are off at first, and replaced as a whole', async () => {
  const { token } = await harness.signUp();
  const { token: other } = await harness.signUp();
  const off = { enabled: false, threshold_amount: 0, topup_amount: 0 };
  expect((await get('auto-topup', token)).body).toEqual(off);
  const settings = { enabled: true, threshold_amount: 300, topup_amount: 500 };
  expect(await setAutoTopup(token, settings)).toMatchObject({
    status: 200,
    body: { status: 'updated' },
  });
  expect((await get('auto-topup', token)).body).toEqual(settings);
  expect((await get('auto-topup', other)).body).toEqual(off);
});

test.each([
  [{ enabled: true, threshold_amount: 0, topup_amount: 499 }, '/topup_amount'],
  [{ enabled: true, threshold_amount: 0, topup_amount: 1_000_001 }, '/topup_amount'],
  [{ enabled: true, threshold_amount: -1, topup_amount: 500 }, '/threshold_amount'],
  [{ enabled: true, threshold_amount: 1.5, topup_amount: 500 }, '/threshold_amount'],
  [{ enabled: 'yes', threshold_amount: 0, topup_amount: 500 }, '/enabled'],
  [{ enabled: null, threshold_amount: 0, topup_amount: 500 }, '/enabled'],
  [{ enabled: true, topup_amount: 500 }, '/threshold_amount'],
  [{ enabled: false, threshold_amount: 0, topup_amount: '500' }, '/topup_amount'],
])('auto-topup %j is refused because of %s', async (json, path) => {
  const { token } = await harness.signUp();
  expect(await setAutoTopup(token, json)).toMatchObject({
    status: 400,
    body: { code: 'validation_failed', errors: [{ path }] },
  });
  expect((await get('auto-topup', token)).body.enabled).toBe(false);
});

test('an amount below the minimum is accepted while top-ups are disabled', async () => {
  const { token } = await harness.signUp();
  const settings = { enabled: false, threshold_amount: 0, topup_amount: 499 };
  expect((await setAutoTopup(token, settings)).status).toBe(200);
});
