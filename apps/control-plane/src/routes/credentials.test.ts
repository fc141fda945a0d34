import { createTokenMinter } from '@svc/service-kit';
import { ComponentDouble, type WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness, type StartedSession } from '../../test/harness.ts';

/** Checks every public route with every kind of credential against the document. */

type Account = Awaited<ReturnType<Harness['signUp']>>;

interface Operation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly accepts: ReadonlySet<string>;
}

const KINDS = [
  'none',
  'garbage',
  'unknown key',
  'revoked key',
  'forged token',
  'internal token',
  'session token',
];

let harness: Harness;
let owner: Account;
let worker: WorkerDouble;
let session: StartedSession;
let operations: Operation[];
let credentials: Map<string, string | undefined>;

beforeAll(async () => {
  harness = await Harness.start();
  worker = await harness.addWorker('w1');
  owner = await harness.signUp();
  await harness.addBundle(owner.key, 'llm', { LLM_API_KEY: 'k' });
  session = await harness.startSession(owner.key);
  operations = operationsOf((await harness.openapi()).document);
  const revoked = await harness.signUp();
  await harness.call('DELETE', `/v1/api-keys/${revoked.body.key_id}`, { key: revoked.token });
  const [head, , signature] = owner.token.split('.');
  const claims = btoa(
    JSON.stringify({ sub: owner.tenantId, aud: 'svc-account', iss: 'svc', exp: 2e9 }),
  );
  const { key } = await new ComponentDouble('worker', 'w1', CLUSTER_SECRET).identity();
  const internal = await createTokenMinter(key, 'w1')('svc-control-plane');
  credentials = new Map([
    ['none', undefined],
    ['garbage', 'svc_live_garbage'],
    ['unknown key', `svc_${'0'.repeat(64)}`],
    ['revoked key', revoked.key],
    ['forged token', `${head}.${claims}.${signature}`],
    ['internal token', internal.replace(/^Bearer /, '')],
    ['session token', String(session.access.jwt)],
    ['apiKey', owner.key],
    ['accountToken', owner.token],
  ]);
});
afterAll(() => harness?.[Symbol.asyncDispose]());

function operationsOf(document: Record<string, unknown>): Operation[] {
  const paths = document.paths as Record<string, Record<string, { security?: object[] }>>;
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { security = [] }]) => ({
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      accepts: new Set(security.flatMap((scheme) => Object.keys(scheme))),
    })),
  );
}

async function statusOf(operation: Operation, path: string, key: string | undefined) {
  const takesBody = ['POST', 'PUT'].includes(operation.method);
  const { status, body } = await harness.call(operation.method, path, {
    key,
    ...(takesBody ? { json: {} } : {}),
  });
  return { status, code: body.code };
}

test('a route accepts the documented kinds of credentials and answers 401 to all others', async () => {
  const table: Record<string, Record<string, number>> = {};
  for (const operation of operations) {
    const row: Record<string, number> = {};
    table[operation.name] = row;
    // Ids that do not exist, so that no call affects the next one.
    const path = operation.path.replace(/\{\w+\}/g, 'none');
    for (const [kind, credential] of credentials) {
      const { status, code } = await statusOf(operation, path, credential);
      row[kind] = status;
      const where = `${operation.name} with ${kind}`;
      if (operation.accepts.size === 0 || operation.accepts.has(kind)) {
        expect(status, where).not.toBe(401);
        expect(status, where).toBeLessThan(500);
      } else {
        expect({ status, code }, where).toEqual({ status: 401, code: 'unauthorized' });
      }
    }
  }
  console.table(table);
});

test('only the routes for sign-in, operation and pages of payments are open', () => {
  const open = operations.filter(({ accepts }) => accepts.size === 0).map(({ name }) => name);
  expect(open.sort()).toEqual([
    'GET /billing/checkout',
    'GET /billing/return',
    'GET /docs',
    'GET /healthz',
    'GET /metrics',
    'GET /openapi.json',
    'GET /readyz',
    'POST /billing/checkout',
    'POST /v1/auth/login',
    'POST /v1/auth/register',
    'POST /v1/auth/verify-otp',
    'POST /v1/billing/webhooks/stripe',
    'POST /v1/tenants',
    'POST /v1/tenants/verify',
  ]);
  for (const kind of KINDS) expect(credentials.has(kind)).toBe(true);
});

test('resources of another tenant are 404 on every route', async () => {
  const stranger = await harness.signUp();
  // After half a minute of silence the worker would get no more sandboxes.
  await worker.heartbeat(harness.plane.url);
  const vmId = await harness.create(owner.key);
  await harness.call('POST', '/v1/tenants/me/secrets', {
    key: owner.key,
    json: { name: 'mine', values: { A: '1' } },
  });
  const ids: Record<string, string> = {
    '/v1/sessions/{id}': session.id,
    '/v1/sandboxes/{id}': vmId,
    '/v1/api-keys/{id}': String(owner.body.key_id),
    '/v1/tenants/me/api-keys/{key_id}': String(owner.body.key_id),
    '/v1/tenants/me/secrets/{name}': 'mine',
  };
  const named = operations.filter(({ path }) => path.includes('{') && !path.includes('{app_id}'));
  for (const operation of named) {
    const [prefix, id] =
      Object.entries(ids).find(([start]) => operation.path.startsWith(start)) ?? [];
    if (prefix === undefined || id === undefined)
      throw new Error(`${operation.name} is not covered`);
    const path = operation.path.replace(/\{\w+\}/, id).replace('{port}', '8080');
    const key = operation.accepts.has('apiKey') ? stranger.key : stranger.token;
    const answer = await harness.call(operation.method, path + queryFor(operation), {
      key,
      ...bodyFor(operation),
    });
    expect(answer.status, `${operation.name}: ${answer.text}`).toBe(404);
  }
  const mine = await harness.call('GET', `/v1/sandboxes/${vmId}`, { key: owner.key });
  expect(mine.body.state).toBe('running');
  expect((await harness.session(owner.key, session.id)).status).toBe('active');
});

function queryFor({ path }: Operation): string {
  return path.endsWith('/files') ? '?path=/tmp/x' : '';
}

/** A valid body for each of these routes. */
function bodyFor({ method, path }: Operation): {
  json?: unknown;
  raw?: string;
  headers?: Record<string, string>;
} {
  if (method === 'PUT') return { json: { values: { A: '2' } } };
  if (path.endsWith('/links')) return { json: { port: 8080 } };
  if (method !== 'POST') return {};
  if (path.endsWith('/exec')) return { json: { command: 'true' } };
  if (path.endsWith('/files'))
    return { raw: 'x', headers: { 'content-type': 'application/octet-stream' } };
  return {};
}
