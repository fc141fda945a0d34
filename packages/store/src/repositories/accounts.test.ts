import { createHash } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../test/test-postgres.ts';
import { startTestServer } from '../../test/test-server.ts';
import { openStore, type Store } from '../store.ts';

const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 1 };
const hash = (text: string): Buffer => createHash('sha256').update(text).digest();

let postgres: TestPostgres;
let store: Store;
let client: pg.Client;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({ url: postgres.url, placement: PLACEMENT });
  await store.tenants.findOrCreate('ada@example.com', 'usr_1');
  client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
});

afterAll(async () => {
  await client?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

test('runs the migrations once when several stores open at the same time', async () => {
  await using empty = await startTestServer();
  const stores = await Promise.all(
    Array.from({ length: 3 }, () => openStore({ url: empty.url, placement: PLACEMENT })),
  );
  await Promise.all(stores.map((other) => other.ping()));
  await Promise.all(stores.map((other) => other.close()));
});

test('concurrent creation for one address makes one tenant', async () => {
  const made = await Promise.all(
    ['usr_a', 'usr_b', 'usr_c'].map((id) => store.tenants.findOrCreate('eve@example.com', id)),
  );
  expect(new Set(made.map((tenant) => tenant.tenant_id)).size).toBe(1);
  expect(made[0]).toMatchObject({ plan: 'free', email: 'eve@example.com' });
});

test('counts at most the allowed requests per hour under concurrency', async () => {
  const ask = () =>
    store.otp.countRequest({ kind: 'email', subject: 'a@example.com', maxPerHour: 3 });
  const waits = await Promise.all(Array.from({ length: 10 }, ask));
  expect(waits.filter((seconds) => seconds === 0)).toHaveLength(3);
  for (const seconds of waits.filter((wait) => wait > 0)) {
    expect(seconds).toBeGreaterThan(3500);
    expect(seconds).toBeLessThanOrEqual(3600);
  }
  expect(
    await store.otp.countRequest({ kind: 'ip', subject: 'a@example.com', maxPerHour: 3 }),
  ).toBe(0);
});

test('allows a limited number of tries per code under concurrency', async () => {
  await store.otp.put('b@example.com', hash('1'), 600);
  const tries = await Promise.all(
    Array.from({ length: 9 }, () => store.otp.takeTry('b@example.com', 5)),
  );
  expect(tries.filter((found) => found !== undefined)).toHaveLength(5);
});

test('a new code replaces the old one and has its own tries', async () => {
  await store.otp.put('c@example.com', hash('1'), 600);
  await store.otp.takeTry('c@example.com', 1);
  await store.otp.put('c@example.com', hash('2'), 600);
  expect(await store.otp.takeTry('c@example.com', 1)).toEqual(hash('2'));
  expect(await store.otp.consume('c@example.com', hash('1'))).toBe(false);
  expect(await store.otp.consume('c@example.com', hash('2'))).toBe(true);
  expect(await store.otp.consume('c@example.com', hash('2'))).toBe(false);
});

test('allows no try for an expired code', async () => {
  await store.otp.put('d@example.com', hash('1'), -1);
  expect(await store.otp.takeTry('d@example.com', 5)).toBeUndefined();
  await store.otp.removeExpired(0, 100);
});

test('finds the owners of many keys at once, and none for an unknown key', async () => {
  const secrets = Array.from({ length: 20 }, (_, index) => `svc_${index}`);
  for (const [index, secret] of secrets.entries()) {
    await store.apiKeys.insert(
      {
        keyId: `key_${index}`,
        tenantId: 'usr_1',
        secret,
        prefix: secret,
      },
      100,
    );
  }
  const owners = await Promise.all(
    [...secrets, 'svc_unknown'].map((secret) => store.apiKeys.findOwner(secret)),
  );
  expect(owners.slice(0, 20).map((owner) => owner?.keyId)).toEqual(
    secrets.map((_, index) => `key_${index}`),
  );
  expect(owners[20]).toBeUndefined();
});

test('records each event of an account up to a thousand an hour, then how many there are of a kind', async () => {
  const tenantId = 'usr_1';
  const created = (key: string) =>
    store.audit.append({ event: 'api_key_created', tenantId, details: { key } });
  const fill = (age: string) =>
    client.query(`insert into audit_records (event, tenant_id, details, created_at)
      select 'secret_rotated', 'usr_1', '{}', now() - interval '${age}' from generate_series(1, 999)`);
  await fill('61 minutes');
  await created('first');
  await created('second');
  await fill('59 minutes');
  for (const key of ['third', 'fourth', 'fifth']) await created(key);
  await store.audit.append({ event: 'api_key_revoked', tenantId });
  const recorded = (await store.audit.list(tenantId, { limit: 2000 }))
    .filter(({ event }) => event.startsWith('api_key'))
    .map(({ event, details }) => [event, details]);
  expect(recorded).toEqual([
    ['api_key_revoked', { counted_only: true, count: 1 }],
    ['api_key_created', { counted_only: true, count: 3 }],
    ['api_key_created', { key: 'second' }],
    ['api_key_created', { key: 'first' }],
  ]);
  await store.tenants.findOrCreate('bob@example.com', 'usr_2');
  await store.audit.append({ event: 'api_key_created', tenantId: 'usr_2', details: { key: 'x' } });
  expect(await store.audit.list('usr_2', { limit: 10 })).toMatchObject([{ details: { key: 'x' } }]);
});
