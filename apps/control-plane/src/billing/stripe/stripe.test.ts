import { createLogger, Secret } from '@svc/service-kit';
import { type AutoTopup, openStore, type Store } from '@svc/store';
import { StripeDouble } from '@svc/stripe-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';
import { AutoTopups } from './auto-topups.ts';
import { openStripe } from './stripe-client.ts';

let stripe: StripeDouble;
let harness: Harness;
/** The stores and top-ups of two control planes. */
let stores: [Store, Store];
let topups: [AutoTopups, AutoTopups];
const never = new AbortController().signal;

beforeAll(async () => {
  stripe = await StripeDouble.start();
  harness = await Harness.start({
    SVC_SIGNUP_GRANT_CENTS: '0',
    SVC_STRIPE_SECRET_KEY: stripe.secretKey,
    SVC_STRIPE_WEBHOOK_SECRET: stripe.webhookSecret,
    SVC_STRIPE_API_BASE: stripe.url,
  });
  const open = () =>
    openStore({
      url: harness.postgres.url,
      placement: { unreachableMs: 30_000, sandboxesPerTenant: 10 },
    });
  stores = [await open(), await open()];
  const topupsOf = (store: Store) =>
    new AutoTopups({
      stripe: openStripe({ secretKey: new Secret(stripe.secretKey), apiBase: stripe.url }),
      ledger: store.billing,
      logger: createLogger({ level: 'silent' }),
    });
  topups = [topupsOf(stores[0]), topupsOf(stores[1])];
});
beforeEach(async () => {
  stripe.mood = 'well';
  // Accounts of earlier tests are topped up no more.
  await harness.sql.query('update billing_accounts set auto_topup = false');
});
afterAll(async () => {
  for (const store of stores ?? []) await store.close();
  await harness?.[Symbol.asyncDispose]();
  await stripe?.[Symbol.asyncDispose]();
});

type Account = Awaited<ReturnType<Harness['signUp']>>;
type Paid = ReturnType<StripeDouble['pay']>;

const checkout = ({ token }: Account, credit_amount = 2000) =>
  harness.call('POST', '/v1/billing/checkout', { key: token, json: { credit_amount } });

async function balanceOf({ token }: Account): Promise<unknown> {
  const { body } = await harness.call('GET', '/v1/billing/balance', { key: token });
  return body.credit_balance;
}

function deliver(event: string, signature = stripe.sign(event), plane = harness.plane) {
  return harness.call('POST', '/v1/billing/webhooks/stripe', {
    raw: event,
    headers: { 'content-type': 'application/json', 'stripe-signature': signature },
    plane,
  });
}

async function pay(account: Account, card: string, amount = 2000) {
  const { body } = await checkout(account, amount);
  return stripe.pay(String(body.url), card);
}

/** An account with a saved card, a balance of 0 and top-ups of 700 cents below 500. */
async function lowAccount(card: string): Promise<Account> {
  const account = await harness.signUp();
  const { succeeded } = await pay(account, card);
  expect((await deliver(succeeded)).status).toBe(200);
  await setTopup(account, {});
  return account;
}

/** Tops up by 700 cents below 500, or as `change` says. */
const setTopup = ({ tenantId }: Account, change: Partial<AutoTopup>) =>
  stores[0].billing.setAutoTopup(tenantId, {
    enabled: true,
    threshold: 500,
    amount: 700,
    ...change,
  });

async function topupFailures({ tenantId }: Account): Promise<number | undefined> {
  const { rows } = await harness.sql.query<{ topup_failures: number }>(
    'select topup_failures from billing_accounts where tenant_id = $1',
    [tenantId],
  );
  return rows[0]?.topup_failures;
}

/** The charges of an account's top-ups at Stripe. */
const topupCharges = ({ tenantId }: Account) =>
  stripe.charges.filter(({ metadata }) => metadata.svc_tenant === tenantId);

/** The payment intent of an account's first charge, as events have it. */
function chargedIntent(account: Account) {
  const [charge] = topupCharges(account);
  return {
    id: charge?.intent,
    object: 'payment_intent',
    amount_received: charge?.amount,
    currency: 'usd',
    metadata: charge?.metadata,
  };
}

/** Makes pending top-ups due, as if their pause were over. */
const makeDue = () => harness.sql.query("update topups set due_at = now() - interval '1 second'");

async function topupStates({ tenantId }: Account): Promise<string[]> {
  const { rows } = await harness.sql.query<{ state: string }>(
    'select state from topups where tenant_id = $1 order by created_at',
    [tenantId],
  );
  return rows.map(({ state }) => state);
}

/** The states of an account's top-ups, and its balance. The control plane of the harness takes part in them. */
async function outcomeOf(account: Account): Promise<[string[], unknown]> {
  return [await topupStates(account), await balanceOf(account)];
}

/** As if the last top-up were ten minutes ago. */
const passInterval = () =>
  harness.sql.query("update billing_accounts set last_topup_at = now() - interval '600 seconds'");

describe('a purchase', () => {
  test('happens on the page of Stripe, and credits the account when its event arrives', async () => {
    const account = await harness.signUp();
    const { body } = await checkout(account, 2500);
    expect(body.url).toMatch(/^https:\/\/checkout\.stripe\.test\/cs_/);
    const { completed } = stripe.pay(String(body.url), 'pm_1');
    expect(await balanceOf(account)).toBe(0);
    expect(await deliver(completed)).toMatchObject({ status: 200, body: { received: true } });
    expect(await balanceOf(account)).toBe(2500);
  });

  test('belongs to one customer per account, also if purchases begin together', async () => {
    const account = await harness.signUp();
    const before = stripe.customers.length;
    await Promise.all([checkout(account), checkout(account), checkout(account)]);
    expect(stripe.customers.length - before).toBe(1);
  });

  test('cannot begin while Stripe does not answer', async () => {
    const account = await harness.signUp();
    stripe.mood = 'unavailable';
    expect(await checkout(account)).toMatchObject({
      status: 503,
      body: { code: 'payment_provider_unavailable' },
    });
    stripe.mood = 'well';
    expect((await checkout(account)).status).toBe(200);
  });
});

describe('an event', () => {
  test('that is delivered ten times to two control planes counts once', async () => {
    const account = await harness.signUp();
    const other = await harness.startAnother();
    const { completed } = await pay(account, 'pm_1');
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        deliver(completed, undefined, n % 2 === 0 ? harness.plane : other),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(await balanceOf(account)).toBe(2000);
    await other.close();
  });

  test.each([
    ['in order', false],
    ['reversed', true],
  ])('has the same effect when events arrive %s', async (_order, reversed) => {
    const account = await harness.signUp();
    const [one, two] = [await pay(account, 'pm_1', 600), await pay(account, 'pm_2', 900)];
    const events = [one.completed, one.succeeded, two.completed, two.succeeded];
    for (const event of reversed ? events.reverse() : events) await deliver(event);
    expect(await balanceOf(account)).toBe(1500);
  });

  test('of an earlier payment that arrives late does not bring its card back', async () => {
    const account = await harness.signUp();
    const [one, two] = [await pay(account, 'pm_1', 600), await pay(account, 'pm_2', 900)];
    const paidAt = (event: string, created: number) =>
      JSON.stringify({ ...JSON.parse(event), created });
    await deliver(paidAt(two.succeeded, 1_800_000_001));
    await deliver(paidAt(one.succeeded, 1_800_000_000));
    await setTopup(account, {});
    await topups[0].run(never);
    await expect.poll(() => topupStates(account)).toEqual(['succeeded']);
    const { rows } = await harness.sql.query(
      'select payment_method from topups where tenant_id = $1',
      [account.tenantId],
    );
    expect(rows).toEqual([{ payment_method: 'pm_2' }]);
  });

  test('of another kind about the same payment does not count a second time', async () => {
    const account = await harness.signUp();
    const { completed } = await pay(account, 'pm_1');
    const { object } = JSON.parse(completed).data;
    await deliver(completed);
    await deliver(stripe.event('checkout.session.async_payment_succeeded', object));
    expect(await balanceOf(account)).toBe(2000);
  });

  test.each([
    ['without a signature', () => ''],
    ['with a signature by another secret', (event: string) => stripe.sign(event, undefined, 'x')],
    ['with the signature of another event', () => stripe.sign('{}')],
    ['signed six minutes ago', (event: string) => stripe.sign(event, Date.now() / 1000 - 360)],
  ])('%s is refused', async (_what, sign) => {
    const account = await harness.signUp();
    const { completed } = await pay(account, 'pm_1');
    expect(await deliver(completed, sign(completed))).toMatchObject({
      status: 400,
      body: { code: 'webhook_signature_invalid' },
    });
    expect(await balanceOf(account)).toBe(0);
    expect((await deliver(completed)).status).toBe(200);
    expect(await balanceOf(account)).toBe(2000);
  });

  test.each([
    ['of another amount', { amount_total: 999_999 }],
    ['in another currency', { currency: 'jpy' }],
    ['that is unpaid', { payment_status: 'unpaid' }],
    ['of an unknown purchase', { metadata: { svc_checkout: 'none' } }],
    ['of another system', { metadata: {} }],
  ])('about a session %s credits nothing', async (_what, change) => {
    const account = await harness.signUp();
    const { completed } = await pay(account, 'pm_1');
    const session = { ...JSON.parse(completed).data.object, ...change };
    expect((await deliver(stripe.event('checkout.session.completed', session))).status).toBe(200);
    expect(await balanceOf(account)).toBe(0);
  });
});

describe('an automatic top-up', () => {
  test('is charged once when two control planes race, and at most once in ten minutes', async () => {
    const account = await lowAccount('pm_ok');
    const race = () => Promise.all([topups[0].run(never), topups[1].run(never)]);
    for (let pass = 0; pass < 5; pass += 1) await race();
    expect(topupCharges(account).map(({ amount }) => amount)).toEqual([700]);
    await expect.poll(() => balanceOf(account)).toBe(700);
    await stores[0].billing.setAutoTopup(account.tenantId, {
      enabled: true,
      threshold: 1000,
      amount: 700,
    });
    await race();
    expect(topupCharges(account)).toHaveLength(1);
    await passInterval();
    await race();
    await expect.poll(() => topupCharges(account)).toHaveLength(2);
    await expect.poll(() => balanceOf(account)).toBe(1400);
  });

  test('whose answer is lost after the charge neither loses nor doubles money', async () => {
    const account = await lowAccount('pm_ok');
    stripe.mood = 'cut after the work';
    await topups[0].run(never);
    await expect.poll(() => topupCharges(account)).toHaveLength(1);
    await expect.poll(() => outcomeOf(account)).toEqual([['pending'], 0]);
    stripe.mood = 'well';
    await makeDue();
    await topups[1].run(never);
    await expect.poll(() => outcomeOf(account)).toEqual([['succeeded'], 700]);
    expect(topupCharges(account)).toHaveLength(1);
  });

  test('whose control plane dies after the charge is credited by its event, once', async () => {
    const account = await lowAccount('pm_ok');
    // The control plane begins it and dies before it hears of the outcome.
    await stores[0].billing.beginTopups({ intervalSeconds: 600, minCents: 500 });
    stripe.mood = 'cut after the work';
    await topups[0].run(never);
    stripe.mood = 'well';
    const intent = chargedIntent(account);
    await deliver(stripe.event('payment_intent.succeeded', intent));
    await deliver(stripe.event('payment_intent.succeeded', intent));
    expect(await balanceOf(account)).toBe(700);
    await makeDue();
    await topups[1].run(never);
    expect([topupCharges(account).length, await balanceOf(account)]).toEqual([1, 700]);
    // A late report of an earlier attempt changes nothing.
    await deliver(stripe.event('payment_intent.payment_failed', intent));
    await expect.poll(() => outcomeOf(account)).toEqual([['succeeded'], 700]);
  });

  test('waits while Stripe is unavailable, and that does not count as a failure', async () => {
    const account = await lowAccount('pm_ok');
    stripe.mood = 'unavailable';
    for (let pass = 0; pass < 4; pass += 1) {
      await makeDue();
      await topups[0].run(never);
    }
    expect(await topupStates(account)).toEqual(['pending']);
    expect((await stores[0].billing.autoTopup(account.tenantId)).enabled).toBe(true);
    stripe.mood = 'well';
    await makeDue();
    await topups[0].run(never);
    await expect.poll(() => balanceOf(account)).toBe(700);
  });

  test.each<[string, (account: Account, paid: Paid) => Promise<unknown>]>([
    ['top-ups are off', (account) => setTopup(account, { enabled: false })],
    ['the amount is another one', (account) => setTopup(account, { amount: 800 })],
    ['the threshold is lower', (account) => setTopup(account, { threshold: 0 })],
    ['the balance is up', (_, { completed }) => deliver(completed)],
    ['another card is saved', (_, { succeeded }) => deliver(succeeded)],
  ])('that waits for Stripe is not charged once %s', async (_what, change) => {
    const account = await lowAccount('pm_ok');
    const paid = await pay(account, 'pm_2');
    stripe.mood = 'unavailable';
    await topups[0].run(never);
    expect(await topupStates(account)).toEqual(['pending']);
    await change(account, paid);
    stripe.mood = 'well';
    await makeDue();
    await topups[0].run(never);
    await expect.poll(() => topupStates(account)).toEqual(['unknown']);
    expect(topupCharges(account)).toEqual([]);
    expect(await topupFailures(account)).toBe(0);
  });

  test('that was charged before top-ups were turned off is credited by its event', async () => {
    const account = await lowAccount('pm_ok');
    stripe.mood = 'cut after the work';
    await topups[0].run(never);
    await expect.poll(() => topupCharges(account)).toHaveLength(1);
    await setTopup(account, { enabled: false });
    stripe.mood = 'well';
    await makeDue();
    await topups[0].run(never);
    await expect.poll(() => outcomeOf(account)).toEqual([['unknown'], 0]);
    const intent = chargedIntent(account);
    await deliver(stripe.event('payment_intent.succeeded', intent));
    expect(await outcomeOf(account)).toEqual([['succeeded'], 700]);
  });

  test('that is declined three times in a row disables the setting, until it is set again', async () => {
    const account = await lowAccount('pm_bad');
    stripe.decline('pm_bad', 'insufficient_funds');
    const enabled = async () => (await stores[0].billing.autoTopup(account.tenantId)).enabled;
    for (const expected of [true, true, false]) {
      await topups[0].run(never);
      await expect.poll(enabled).toBe(expected);
      await passInterval();
    }
    await topups[0].run(never);
    await expect.poll(() => topupStates(account)).toEqual(['failed', 'failed', 'failed']);
    const { rows } = await harness.sql.query(
      'select distinct failure from topups where tenant_id = $1',
      [account.tenantId],
    );
    expect(rows).toEqual([{ failure: 'insufficient_funds' }]);
    stripe.decline('pm_bad', undefined);
    await stores[0].billing.setAutoTopup(account.tenantId, {
      enabled: true,
      threshold: 500,
      amount: 700,
    });
    await topups[0].run(never);
    await expect.poll(() => balanceOf(account)).toBe(700);
  });

  test('without an answer for 23 hours is given up, before the key at Stripe expires', async () => {
    const account = await lowAccount('pm_ok');
    stripe.mood = 'unavailable';
    await topups[0].run(never);
    await harness.sql.query("update topups set created_at = now() - interval '23 hours 1 second'");
    stripe.mood = 'well';
    await topups[0].run(never);
    await expect.poll(() => topupStates(account)).toEqual(['unknown']);
    expect(topupCharges(account)).toHaveLength(0);
  });

  test('needs a saved card and a balance below the threshold', async () => {
    const account = await harness.signUp();
    const settings = { enabled: true, threshold: 500, amount: 700 };
    await stores[0].billing.setAutoTopup(account.tenantId, settings);
    await topups[0].run(never);
    expect(await topupStates(account)).toEqual([]);
    const { completed, succeeded } = await pay(account, 'pm_ok', 500);
    await deliver(completed);
    await deliver(succeeded);
    await topups[0].run(never);
    expect(await topupStates(account)).toEqual([]);
    await stores[0].billing.setAutoTopup(account.tenantId, { ...settings, threshold: 501 });
    await topups[0].run(never);
    await expect.poll(() => topupStates(account)).toEqual(['succeeded']);
  });
});
