import { expect, test } from 'vitest';
import { type Answer, json, scriptedFetch } from '../../test/scripted-fetch.ts';
import { SvcClient } from '../client.ts';

function clientOf(...answers: Answer[]) {
  const { fetch, seen } = scriptedFetch(...answers);
  return { client: new SvcClient({ baseUrl: 'https://svc.test', apiKey: 'svc_k', fetch }), seen };
}

test('escapes the names of bundles and keys, and accepts a response without a body', async () => {
  const { client, seen } = clientOf(new Response(null, { status: 204 }), json(200, { name: 'a' }));
  expect(await client.keys.revoke('key_/x')).toBeUndefined();
  await client.secrets.get('a/b');
  expect(seen.map((request) => `${request.method} ${request.url.pathname}`)).toEqual([
    'DELETE /v1/tenants/me/api-keys/key_%2Fx',
    'GET /v1/tenants/me/secrets/a%2Fb',
  ]);
});

test('never retries a rotation', async () => {
  const { client, seen } = clientOf(json(503, {}));
  await expect(client.secrets.rotate('a', { K: 'v' })).rejects.toThrow();
  expect(seen).toHaveLength(1);
  expect(seen[0]?.method).toBe('PUT');
  expect(seen[0]?.body).toBe('{"values":{"K":"v"}}');
});

test('fetches audit records page by page', async () => {
  const entry = (id: string) => ({ id, event: 'login_succeeded', created_at: '', details: {} });
  const { client, seen } = clientOf(
    json(200, { entries: [entry('3'), entry('2')], next_cursor: '2' }),
    json(200, { entries: [entry('1')] }),
  );
  const ids: string[] = [];
  for await (const { id } of client.account.audit()) ids.push(id);
  expect(ids).toEqual(['3', '2', '1']);
  expect(seen.map((request) => request.url.search)).toEqual(['?limit=100', '?limit=100&cursor=2']);
});

test('reads and changes billing', async () => {
  const { client, seen } = clientOf(
    json(200, { credit_balance: -3 }),
    json(200, { transactions: [] }),
    json(200, { url: 'https://pay.test' }),
    json(200, { status: 'updated' }),
  );
  expect(await client.billing.balance()).toBe(-3);
  expect(await client.billing.transactions({ limit: 5, offset: 10 })).toEqual([]);
  expect(await client.billing.checkout(500)).toEqual({ url: 'https://pay.test' });
  await client.billing.setAutoTopup({ enabled: true, threshold_amount: 1, topup_amount: 500 });
  expect(seen.map(({ method, url, body }) => [method, url.pathname + url.search, body])).toEqual([
    ['GET', '/v1/billing/balance', undefined],
    ['GET', '/v1/billing/transactions?limit=5&offset=10', undefined],
    ['POST', '/v1/billing/checkout', '{"credit_amount":500}'],
    ['PUT', '/v1/billing/auto-topup', '{"enabled":true,"threshold_amount":1,"topup_amount":500}'],
  ]);
});

test('reads usage and the dashboard with their queries', async () => {
  const { client, seen } = clientOf(json(200, {}), json(200, {}), json(200, {}), json(200, {}));
  await client.usage.current();
  await client.usage.history({ from: '2026-11-01' });
  await client.dashboard.sandboxes({ limit: 5, offset: 10 });
  await client.dashboard.dailyUsage({ from: '2026-11-01', to: '2026-11-02' });
  expect(seen.map(({ url }) => url.pathname + url.search)).toEqual([
    '/v1/usage',
    '/v1/usage/history?from=2026-11-01',
    '/v1/dashboard/sandboxes?limit=5&offset=10',
    '/v1/dashboard/usage/daily?from=2026-11-01&to=2026-11-02',
  ]);
});
