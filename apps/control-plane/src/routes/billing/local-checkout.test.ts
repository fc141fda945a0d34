import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start({ SVC_SIGNUP_GRANT_CENTS: '0' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

async function begin(token: string, credit_amount: unknown = 1234) {
  return harness.call('POST', '/v1/billing/checkout', { key: token, json: { credit_amount } });
}

/** The path and query of a new checkout's page. */
async function beginPage(token: string): Promise<string> {
  const { body } = await begin(token);
  const { origin, pathname, search } = new URL(String(body.url));
  expect(origin).toBe(new URL(harness.plane.url).origin);
  return pathname + search;
}

const show = (page: string, plane = harness.plane) => harness.call('GET', page, { plane });

/** Sends the form of the page. */
async function confirm(page: string, changes: Record<string, string> = {}, plane = harness.plane) {
  const { text } = await show(page, plane);
  const fields = [...text.matchAll(/name="(\w+)" value="([\w-]+)"/g)].map(
    ([, name, value]) => [name, value] as [string, string],
  );
  const body = new URLSearchParams({ ...Object.fromEntries(fields), ...changes }).toString();
  const url = `${plane.url}/billing/checkout`;
  return fetch(url, { method: 'POST', headers: FORM, body, redirect: 'manual' });
}

async function balanceOf(token: string): Promise<unknown> {
  const { body } = await harness.call('GET', '/v1/billing/balance', { key: token });
  return body.credit_balance;
}

test('the page says that there is no provider, and its form credits the account once', async () => {
  const { token } = await harness.signUp();
  const page = await beginPage(token);
  const shown = await show(page);
  expect(shown.text).toContain('No payment provider is configured');
  expect(shown.text).toContain('$12.34');
  expect(await balanceOf(token)).toBe(0);
  const confirmed = await confirm(page);
  expect(confirmed.status).toBe(303);
  expect(confirmed.headers.get('location')).toBe(page);
  expect((await show(page)).text).toContain('has been credited with $12.34');
  expect(await balanceOf(token)).toBe(1234);
});

test('ten confirmations at two control planes credit once', async () => {
  const { token } = await harness.signUp();
  const other = await harness.startAnother();
  const page = await beginPage(token);
  const { text } = await show(page);
  const formToken = /name="form_token" value="([\w-]+)"/.exec(text)?.[1] ?? '';
  const body = new URLSearchParams({
    token: new URLSearchParams(page.split('?')[1]).get('token') ?? '',
    form_token: formToken,
  }).toString();
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      fetch(`${(n % 2 === 0 ? harness.plane : other).url}/billing/checkout`, {
        method: 'POST',
        headers: FORM,
        body,
        redirect: 'manual',
      }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(303));
  expect(await balanceOf(token)).toBe(1234);
  await other.close();
});

test('the page allows no script, no frame and no other origin, and is not stored', async () => {
  const { token } = await harness.signUp();
  const { headers, text } = await show(await beginPage(token));
  const policy = headers.get('content-security-policy') ?? '';
  expect(policy).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
  );
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(text).not.toMatch(/<script|https?:/);
});

test('another link, another form or an expired link credits nobody', async () => {
  const [ada, eve] = [await harness.signUp(), await harness.signUp()];
  const adas = await beginPage(ada.token);
  const eves = await beginPage(eve.token);
  const guessed = adas.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
  expect(await show(guessed)).toMatchObject({
    status: 404,
    body: { code: 'checkout_not_found' },
  });
  const adasToken = new URLSearchParams(adas.split('?')[1]).get('token') ?? '';
  // The form of one's own page does not confirm a checkout of somebody else, nor does a form without its token.
  expect((await confirm(eves, { token: adasToken })).status).toBe(404);
  expect((await confirm(adas, { form_token: 'x' })).status).toBe(404);
  await harness.sql.query("update checkouts set expires_at = now() - interval '1 second'");
  expect((await show(adas)).status).toBe(404);
  expect((await confirm(eves, { token: adasToken, form_token: 'x' })).status).toBe(404);
  expect([await balanceOf(ada.token), await balanceOf(eve.token)]).toEqual([0, 0]);
});

test('the database and the log hold no link', async () => {
  const { token } = await harness.signUp();
  const page = await beginPage(token);
  await confirm(page);
  const secret = new URLSearchParams(page.split('?')[1]).get('token') ?? 'none';
  expect(await harness.dump()).not.toContain(secret);
  expect(harness.logLines.join('\n')).not.toContain(secret);
});

test.each([[499], [1_000_001], [-500], [500.5], ['500'], [null], [undefined]])(
  'a purchase of %s cents is 400',
  async (amount) => {
    const { token } = await harness.signUp();
    const answer = await harness.call('POST', '/v1/billing/checkout', {
      key: token,
      json: { credit_amount: amount },
    });
    expect(answer).toMatchObject({ status: 400, body: { code: 'validation_failed' } });
  },
);

test.each([[500], [1_000_000]])('a purchase of %d cents is possible', async (amount) => {
  const { token } = await harness.signUp();
  const { status, body } = await begin(token, amount);
  expect(status).toBe(200);
  const { pathname, search } = new URL(String(body.url));
  await confirm(pathname + search);
  expect(await balanceOf(token)).toBe(amount);
});

test('an account may begin 60 purchases an hour', async () => {
  const { token } = await harness.signUp();
  const answers = await Promise.all(Array.from({ length: 61 }, () => begin(token)));
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(1);
  expect(refused[0]?.body.code).toBe('rate_limited');
});

test('the webhook of Stripe does not exist without Stripe', async () => {
  const answer = await harness.call('POST', '/v1/billing/webhooks/stripe', { json: {} });
  expect(answer).toMatchObject({ status: 404, body: { code: 'route_not_found' } });
});
