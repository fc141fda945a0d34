import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import type { ComponentKind } from '@svc/contract';
import {
  createHttpServer,
  createLogger,
  createTokenMinter,
  generateKeyPair,
  type HttpServer,
  type KeyPair,
} from '@svc/service-kit';
import { FairStarts } from '@svc/service-kit/concurrency';
import { statementOwner } from '@svc/store/testing';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { AccountTokens } from './account-tokens.ts';
import { createApiKeyHook, createAuthenticators } from './authenticators.ts';
import { callerFields, callerOf } from './caller.ts';
import {
  createComponentAuthenticator,
  requireWorker,
  workerOf,
} from './component-authenticator.ts';
import { SigningKeys } from './signing-keys.ts';
import { assignStatementOwners } from './statement-owners.ts';
import { TenantRequests } from './tenant-requests.ts';

const KEY = `svc_${'a'.repeat(64)}`;
const UNKNOWN_KEY = `svc_${'b'.repeat(64)}`;
const MOST = 2;

let ledger: TestLedger;
let app: HttpServer;
let token: string;
let workerKey: KeyPair;
/** Requests that wait until the test lets them go on. */
let held: (() => void)[] = [];

beforeAll(async () => {
  ledger = await startTestLedger();
  const { store } = ledger;
  await store.apiKeys.insert({ keyId: 'key_1', tenantId: 't', secret: KEY, prefix: 'svc_a' }, 9);
  const accounts = new AccountTokens(new SigningKeys(store.signingKeys, [Buffer.alloc(32, 1)]));
  token = await accounts.sign({ tenantId: 't', email: 'a@b.c' });
  const auth = createAuthenticators(store, accounts, new TenantRequests(MOST), new FairStarts());
  const components = createComponentAuthenticator(store.components);
  workerKey = await enrolled('w1', 'worker');
  app = createHttpServer({ logger: createLogger({ level: 'silent' }) });
  app.decorateRequest('caller', undefined);
  app.decorateRequest('component', undefined);
  assignStatementOwners(app);
  const answer = async (request: FastifyRequest) => ({
    fields: callerFields(request),
    owner: { ...statementOwner() },
    early: request.headers['x-early'],
  });
  // Hooks like those of other parts, which also run statements.
  app.addHook('onRequest', async (request) => {
    request.headers['x-early'] = JSON.stringify(statementOwner());
  });
  const routes = {
    key: auth.apiKey,
    uncounted: auth.apiKeyUncounted,
    account: auth.account,
    either: auth.apiKeyOrAccount,
    'only-keys': createApiKeyHook(store),
    worker: components.worker,
    runtime: components.runtime,
    component: components.any,
    open: async () => undefined,
  };
  for (const [name, hook] of Object.entries(routes)) {
    app.route({ method: ['GET', 'POST'], url: `/${name}`, onRequest: hook, handler: answer });
  }
  app.route({
    method: ['GET', 'DELETE'],
    url: '/held',
    onRequest: auth.apiKey,
    handler: () => new Promise((resolve) => held.push(() => resolve({}))),
  });
  app.get('/caller', async (request) => callerOf(request));
  app.get('/worker-of', async (request) => workerOf(request));
  app.get('/workers/:id', { onRequest: components.worker }, async (request) => {
    requireWorker(request, (request.params as { id: string }).id);
    return { id: workerOf(request) };
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await app?.close();
  await ledger?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  held = [];
});

interface Body {
  readonly fields?: object;
  readonly owner?: unknown;
  readonly early?: string;
}

const call = async (path: string, authorization?: string, method = 'GET') => {
  const { port } = app.server.address() as AddressInfo;
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...headers, ...(method === 'POST' ? { 'content-type': 'application/json' } : {}) },
    ...(method === 'POST' ? { body: '{}' } : {}),
  });
  const body = (await response.json()) as Body;
  return { status: response.status, headers: response.headers, body };
};
const bearer = (credential: string) => `Bearer ${credential}`;
const refused = { status: 401, body: { code: 'unauthorized' } };
const refusedComponent = { status: 401, body: { code: 'component_unauthorized' } };

/** The key of a component that has enrolled. */
async function enrolled(componentId: string, kind: ComponentKind): Promise<KeyPair> {
  const key = await generateKeyPair();
  const expiresAt = new Date(Date.now() + 60_000);
  const token = { tokenId: randomUUID(), uses: 1, expiresAt, isForId: false };
  const { id: keyId, publicKey } = key;
  const component = { componentId, kind, keyId, publicKey: publicKey.x, token };
  expect(await ledger.store.components.enrol(component)).toBeUndefined();
  return key;
}

describe.each([
  ['key', ['key']],
  ['uncounted', ['key']],
  ['only-keys', ['key']],
  ['account', ['token']],
  ['either', ['key', 'token']],
])('a route for %s', (path, accepted) => {
  test('tells who calls', async () => {
    const byKey = await call(`/${path}`, bearer(KEY));
    const byToken = await call(`/${path}`, bearer(token));
    const owner = { pool: 'customers', key: 't' };
    if (!accepted.includes('key')) expect(byKey).toMatchObject(refused);
    else expect(byKey.body).toMatchObject({ fields: { tenant_id: 't', key_id: 'key_1' }, owner });
    if (!accepted.includes('token')) expect(byToken).toMatchObject(refused);
    else expect(byToken.body).toMatchObject({ fields: { tenant_id: 't' }, owner });
    if (accepted.includes('token')) expect(byToken.body.fields).not.toHaveProperty('key_id');
  });

  test('refuses an unknown key, a wrong token and no credential', async () => {
    for (const credential of [bearer(UNKNOWN_KEY), bearer('a.b.c'), undefined]) {
      expect(await call(`/${path}`, credential)).toMatchObject(refused);
    }
  });
});

describe('a credential', () => {
  test.each([
    ['Bearer  KEY', 200],
    ['bearer KEY', 200],
    ['Bearer KEY  ', 200],
    ['KEY', 401],
    ['Basic KEY', 401],
    ['xBearer KEY', 401],
    ['BearerKEY', 401],
    ['Bearer KEY x', 401],
    ['Bearer ', 401],
    [`Bearer ${'x'.repeat(8193)}`, 401],
  ])('%.20s: %i', async (header, status) => {
    expect((await call('/key', header.replace('KEY', KEY))).status).toBe(status);
  });
});

describe('requests of one tenant', () => {
  test('are as many at once as the limit allows, and as many deletions', async () => {
    const get = () => call('/held', bearer(KEY));
    const remove = () => call('/held', bearer(KEY), 'DELETE');
    const running = [get(), get(), remove(), remove()];
    await expect.poll(() => held.length).toBe(2 * MOST);
    for (const method of [get, remove]) {
      const answer = await method();
      expect(answer).toMatchObject({ status: 429, body: { code: 'too_many_requests' } });
      expect(answer.headers.get('retry-after')).toBe('1');
    }
    expect((await call('/uncounted', bearer(KEY))).status).toBe(200);
    for (const goOn of held.splice(0)) goOn();
    await Promise.all(running);
    // The server may notice the end of an answer later than its client.
    await expect.poll(async () => (await call('/key', bearer(KEY))).status).toBe(200);
  });

  test('that leave give their places back', async () => {
    const { port } = app.server.address() as AddressInfo;
    const sockets = Array.from({ length: MOST }, () => connect(port, '127.0.0.1'));
    for (const socket of sockets) {
      await once(socket, 'connect');
      socket.write(`GET /held HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${KEY}\r\n\r\n`);
    }
    await expect.poll(() => held.length).toBe(MOST);
    expect((await call('/key', bearer(KEY))).status).toBe(429);
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => (await call('/key', bearer(KEY))).status).toBe(200);
    for (const goOn of held.splice(0)) goOn();
  });

  test('whose connection is gone before it is counted take no place', () => {
    const requests = new TenantRequests(1);
    const request = { method: 'GET', caller: { tenantId: 't' } } as FastifyRequest;
    const gone = { raw: { closed: true } } as FastifyReply;
    requests.count(request, gone);
    requests.count(request, gone);
  });
});

describe('statements', () => {
  const owner = (response: { body: Body }) => response.body.owner;
  const network = { pool: 'customers', key: '127.0.0.1' };

  test('run for the network of a request until it is authenticated, and then for its tenant', async () => {
    const answer = await call('/key', bearer(KEY));
    expect(JSON.parse(answer.body.early ?? '')).toEqual(network);
    expect(owner(answer)).toEqual({ pool: 'customers', key: 't' });
    expect(owner(await call('/open'))).toEqual(network);
  });

  test('run for the tenant also after a body was read', async () => {
    expect(owner(await call('/key', bearer(KEY), 'POST'))).toEqual({
      pool: 'customers',
      key: 't',
    });
  });

  test('of a worker run for the service', async () => {
    const mint = createTokenMinter(workerKey, 'w1');
    const answer = await call('/worker', bearer(await mint('svc-control-plane')));
    expect(owner(answer)).toEqual({ pool: 'service', key: 'w1' });
    expect(answer.body.fields).toEqual({ component_id: 'w1' });
  });
});

describe('a worker', () => {
  test('speaks for itself alone', async () => {
    const credential = bearer(await createTokenMinter(workerKey, 'w1')('svc-control-plane'));
    expect(await call('/workers/w1', credential)).toMatchObject({
      status: 200,
      body: { id: 'w1' },
    });
    expect((await call('/workers/w2', credential)).body).toMatchObject({
      code: 'worker_id_mismatch',
    });
  });

  test('needs a token for this audience', async () => {
    const other = bearer(await createTokenMinter(workerKey, 'w1')('w2'));
    for (const credential of [other, bearer(KEY), undefined]) {
      expect(await call('/worker', credential)).toMatchObject(refusedComponent);
    }
  });
});

describe('a component', () => {
  const as = async (key: KeyPair, id: string) =>
    bearer(await createTokenMinter(key, id)('svc-control-plane'));

  test('is refused with the key of another, whatever id it claims', async () => {
    const other = await enrolled('w2', 'worker');
    const unknown = await generateKeyPair();
    for (const credential of [
      await as(other, 'w1'),
      await as(workerKey, 'w2'),
      await as(unknown, 'w1'),
      await as(unknown, 'w3'),
    ]) {
      expect(await call('/worker', credential)).toMatchObject(refusedComponent);
    }
  });

  test('has only the routes of its kind', async () => {
    const runtime = await as(await enrolled('r1', 'runtime'), 'r1');
    const worker = await as(workerKey, 'w1');
    expect(await call('/runtime', worker)).toMatchObject(refusedComponent);
    expect(await call('/worker', runtime)).toMatchObject(refusedComponent);
    for (const [path, credential] of [
      ['/runtime', runtime],
      ['/component', runtime],
      ['/component', worker],
    ] as const) {
      expect((await call(path, credential)).status).toBe(200);
    }
  });

  test('is refused from the moment its key is revoked', async () => {
    const key = await enrolled('w9', 'worker');
    const token = await as(key, 'w9');
    expect((await call('/worker', token)).status).toBe(200);
    expect(await ledger.store.components.revoke('w9', 'runtime')).toBe(false);
    expect((await call('/worker', token)).status).toBe(200);
    expect(await ledger.store.components.revoke('w9', 'worker')).toBe(true);
    expect(await call('/worker', token)).toMatchObject(refusedComponent);
    expect(await ledger.store.components.revoke('w9', 'worker')).toBe(false);
  });
});

test('a route without authentication has neither a caller nor a worker', async () => {
  expect(await call('/caller', bearer(KEY))).toMatchObject(refused);
  expect(await call('/worker-of', bearer(KEY))).toMatchObject(refusedComponent);
});
