import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../test/test-postgres.ts';
import { openStore, type Store } from '../store.ts';

const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 1 };
const hash = (text: string): Buffer => createHash('sha256').update(text).digest();

let postgres: TestPostgres;
let store: Store;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({ url: postgres.url, placement: PLACEMENT });
  await store.tenants.findOrCreate('ada@example.com', 'usr_1');
});

afterAll(async () => {
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

test('runs the migrations once when several stores open at the same time', async () => {
  const stores = await Promise.all(
    Array.from({ length: 3 }, () => openStore({ url: postgres.url, placement: PLACEMENT })),
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
  await store.otp.removeExpired();
});

test('finds the owners of many keys at once, and none for an unknown key', async () => {
  const secrets = Array.from({ length: 20 }, (_, index) => `svc_${index}`);
  for (const [index, secret] of secrets.entries()) {
    await store.apiKeys.insert({
      keyId: `key_${index}`,
      tenantId: 'usr_1',
      secret,
      prefix: secret,
    });
  }
  const owners = await Promise.all(
    [...secrets, 'svc_unknown'].map((secret) => store.apiKeys.findOwner(secret)),
  );
  expect(owners.slice(0, 20).map((owner) => owner?.keyId)).toEqual(
    secrets.map((_, index) => `key_${index}`),
  );
  expect(owners[20]).toBeUndefined();
});

test('an idempotency key is claimed once, then replayed, and refused for a different body', async () => {
  const id = { tenantId: 'usr_1', operation: 'sandboxes.create', key: 'k1' };
  const claim = (body: string) =>
    store.idempotency.claim(id, {
      bodyHash: hash(body),
      subject: 'vm_1',
      lockSeconds: 60,
      lifetimeSeconds: 86_400,
    });
  const claims = await Promise.all(Array.from({ length: 5 }, () => claim('a')));
  expect(claims.map((found) => found.kind).sort()).toEqual([
    'claimed',
    'running',
    'running',
    'running',
    'running',
  ]);
  expect(await claim('b')).toEqual({ kind: 'other_body' });
  const response = { status: 201, body: { vm_id: 'vm_1' } };
  await store.idempotency.complete(id, response);
  expect(await claim('a')).toEqual({ kind: 'done', response });
  await store.idempotency.release(id);
  expect(await claim('a')).toEqual({ kind: 'done', response });
  await store.idempotency.removeExpired(-1);
  expect(await claim('b')).toEqual({ kind: 'claimed' });
});

test('exactly one request takes over an expired claim', async () => {
  const id = { tenantId: 'usr_1', operation: 'sandboxes.create', key: 'k2' };
  const claim = (lockSeconds: number) =>
    store.idempotency.claim(id, {
      bodyHash: hash('a'),
      subject: 'vm_2',
      lockSeconds,
      lifetimeSeconds: 86_400,
    });
  await claim(-1);
  const claims = await Promise.all([claim(60), claim(60)]);
  expect(claims.map((found) => found.kind).sort()).toEqual(['running', 'taken_over']);
});

test('appends audit records', async () => {
  await store.audit.append({ event: 'login_failed', details: { email: 'x' } });
});
