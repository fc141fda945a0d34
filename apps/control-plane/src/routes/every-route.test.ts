import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { StripeDouble } from '@svc/stripe-double';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Answer, type Call, Harness, sessionRequest } from '../../test/harness.ts';

/** Holds docs/routes.md to the routes that exist, by calling each of them. */

type Caller = (
  operation: string,
  /** `params` replace the names in the path. */
  options: Call & { readonly params?: readonly string[]; readonly query?: string },
) => Promise<Answer>;

interface Row {
  readonly operation: string;
  readonly status: number;
  readonly test: string;
}

const PAGE = new URL('../../../../docs/routes.md', import.meta.url);
const OCTETS = { 'content-type': 'application/octet-stream' };

let harness: Harness;
let stripe: StripeDouble;
let rows: readonly Row[];

beforeAll(async () => {
  stripe = await StripeDouble.start();
  harness = await Harness.start();
  rows = rowsOf(await readFile(PAGE, 'utf8'));
});
afterAll(async () => {
  await harness?.[Symbol.asyncDispose]();
  await stripe?.[Symbol.asyncDispose]();
});

/** The rows of the page that name an operation of the API. */
function rowsOf(page: string): Row[] {
  const row =
    /^\| `((?:GET|POST|PUT|DELETE) \/[^`]*)` \| \+? *\| (\d+) \| \[[^\]]+\]\((\S+)\) \|$/gm;
  return [...page.matchAll(row)].map(([, operation = '', status, file = '']) => ({
    operation,
    status: Number(status),
    test: fileURLToPath(new URL(file, PAGE)),
  }));
}

test('the page lists exactly the routes of the API', async () => {
  const listed = rows.map(({ operation }) => operation);
  expect(listed.toSorted()).toEqual((await harness.openapi()).operations().sort());
});

test('each test that the page names exists and mentions its route', async () => {
  const unmentioned: string[] = [];
  for (const { operation, test: file } of rows) {
    const word = operation.split('/').findLast((part) => !part.includes('{')) ?? '';
    if (!(await readFile(file, 'utf8')).includes(word)) unmentioned.push(operation);
  }
  expect(unmentioned).toEqual([]);
});

test('each route succeeds with the status that the page says', { timeout: 120_000 }, async () => {
  const called = new Map<string, number>();

  const call: Caller = async (operation, { params = [], query = '', ...rest }) => {
    const [method = '', template = ''] = operation.split(' ');
    const left = [...params];
    const path = template.replace(/\{\w+\}/g, () => left.shift() ?? '');
    const answer = await harness.call(method, path + query, rest);
    called.set(operation, answer.status);
    return answer;
  };

  const confirmed = await visitAccounts(call);
  called.set('POST /billing/checkout', confirmed);
  await visitSandboxes(call);
  await visitWorkspaces(call);
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs']) {
    await call(`GET ${path}`, {});
  }
  const expected = rows.map(({ operation, status }) => [operation, status] as const);
  expect(Object.fromEntries(called)).toEqual(Object.fromEntries(expected));
});

/** Accounts, keys, secrets, usage and money. Returns the status of a confirmed checkout. */
async function visitAccounts(call: Caller): Promise<number> {
  await call('POST /v1/auth/register', { json: { email: 'new@example.com' } });
  const email = 'old@example.com';
  await call('POST /v1/auth/login', { json: { email } });
  const json = { email, code: await harness.lastCode(email) };
  await call('POST /v1/auth/verify-otp', { json });
  const tenant = { email: 'ada@example.com' };
  await call('POST /v1/tenants', { json: tenant });
  const code = await harness.lastCode(tenant.email);
  const { body } = await call('POST /v1/tenants/verify', { json: { ...tenant, code } });
  const key = String(body.api_key);
  const token = String(body.token);
  await call('GET /v1/tenants/me', { key });
  for (const [path, param, credential] of [
    ['/v1/tenants/me/api-keys', 'key_id', key],
    ['/v1/api-keys', 'id', token],
  ] as const) {
    const made = await call(`POST ${path}`, { key: credential });
    await call(`GET ${path}`, { key: credential });
    await call(`DELETE ${path}/{${param}}`, {
      key: credential,
      params: [String(made.body.key_id)],
    });
  }
  const secrets = '/v1/tenants/me/secrets';
  await call(`POST ${secrets}`, { key, json: { name: 'llm', values: { A: '1' } } });
  await call(`GET ${secrets}`, { key });
  await call(`GET ${secrets}/{name}`, { key, params: ['llm'] });
  await call(`PUT ${secrets}/{name}`, { key, params: ['llm'], json: { values: { A: '2' } } });
  await call(`DELETE ${secrets}/{name}`, { key, params: ['llm'] });
  await call('GET /v1/templates', { key });
  await call('GET /v1/templates/{app_id}', { key, params: ['deictic'] });
  await call('GET /v1/audit', { key: token });

  await call('GET /v1/usage', { key });
  await call('GET /v1/usage/history', { key });
  await call('GET /v1/dashboard/overview', { key: token });
  await call('GET /v1/dashboard/sandboxes', { key: token });
  const query = '?from=2026-01-01&to=2026-01-02';
  await call('GET /v1/dashboard/usage/daily', { key: token, query });

  await call('GET /v1/billing/balance', { key: token });
  await call('GET /v1/billing/transactions', { key: token });
  await call('GET /v1/billing/auto-topup', { key: token });
  const topup = { enabled: false, threshold_amount: 0, topup_amount: 500 };
  await call('PUT /v1/billing/auto-topup', { key: token, json: topup });
  await call('GET /billing/return', {});
  await visitStripe(call);
  return visitLocalCheckout(call, token);
}

async function visitStripe(call: Caller): Promise<void> {
  const plane = await harness.startAnother({
    SVC_STRIPE_SECRET_KEY: stripe.secretKey,
    SVC_STRIPE_WEBHOOK_SECRET: stripe.webhookSecret,
    SVC_STRIPE_API_BASE: stripe.url,
  });
  try {
    const event = stripe.event('customer.created', {});
    await call('POST /v1/billing/webhooks/stripe', {
      raw: event,
      headers: { 'content-type': 'application/json', 'stripe-signature': stripe.sign(event) },
      plane,
    });
  } finally {
    await plane.close();
  }
}

async function visitLocalCheckout(call: Caller, key: string): Promise<number> {
  const begun = await call('POST /v1/billing/checkout', { key, json: { credit_amount: 500 } });
  const { search } = new URL(String(begun.body.url));
  const { text } = await call('GET /billing/checkout', { query: search });
  const fields = [...text.matchAll(/name="(\w+)" value="([\w-]+)"/g)];
  const confirmed = await fetch(`${harness.plane.url}/billing/checkout`, {
    method: 'POST',
    body: new URLSearchParams(Object.fromEntries(fields.map(([, name, value]) => [name, value]))),
    redirect: 'manual',
  });
  return confirmed.status;
}

async function visitSandboxes(call: Caller): Promise<void> {
  const { key } = await harness.signUp();
  const worker = await harness.addWorker('w1');
  const json = { template: 'standard', agent: 'claude-code', llm_key: 'k' };
  const { body } = await call('POST /v1/sandboxes', { key, json });
  const one = { key, params: [String(body.vm_id)] };
  await call('GET /v1/sandboxes', { key });
  await call('GET /v1/sandboxes/{id}', one);
  await call('POST /v1/sandboxes/{id}/exec', { ...one, json: { command: 'true' } });
  await call('GET /v1/sandboxes/{id}/logs', one);
  const file = { ...one, query: '?path=/tmp/a' };
  await call('POST /v1/sandboxes/{id}/files', { ...file, raw: 'x', headers: OCTETS });
  await call('GET /v1/sandboxes/{id}/files', file);
  await call('POST /v1/sandboxes/{id}/cancel', one);
  await call('POST /v1/sandboxes/{id}/connect', one);
  await call('POST /v1/sandboxes/{id}/links', { ...one, json: { port: 8080 } });
  worker.ports.servers.set(8080, await serveAnything());
  const port = { key, params: [String(body.vm_id), '8080', 'index.html'] };
  await call('GET /v1/sandboxes/{id}/ports/{port}/{path}', port);
  await call('POST /v1/sandboxes/{id}/pause', one);
  await call('POST /v1/sandboxes/{id}/resume', one);
  await call('DELETE /v1/sandboxes/{id}', one);

  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'k' });
  const begun = await call('POST /v1/sessions', { key, json: sessionRequest() });
  const id = String(begun.body.chat_session_id);
  await call('GET /v1/sessions', { key });
  await call('GET /v1/sessions/{id}', { key, params: [id] });
  await call('POST /v1/sessions/resume', { key, json: { chat_session_id: id } });
  await call('DELETE /v1/sessions/{id}', { key, params: [id] });
}

/** The port of a server that answers every request. */
async function serveAnything(): Promise<number> {
  const server = createServer((_request, response) => response.end('ok'));
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function visitWorkspaces(call: Caller): Promise<void> {
  const { token: key } = await harness.signUp();
  const path = '/v1/workspaces/{app_id}/{capset_id}';
  const one = { key, params: ['my-app', 'default'] };
  const file = { key, params: [...one.params, 'a.txt'] };
  for (const params of [file.params, [...one.params, 'b.txt']]) {
    const { body } = await call(`PUT ${path}/files/{path}`, { key, params });
    const stored = await fetch(String(body.url), { method: 'PUT', body: 'x' });
    expect(stored.status).toBe(200);
  }
  await call('GET /v1/workspaces', { key });
  await call(`GET ${path}`, one);
  await call(`GET ${path}/usage`, one);
  await call(`GET ${path}/files/{path}`, file);
  await call(`DELETE ${path}/files/{path}`, file);
  await call(`DELETE ${path}`, one);
}
