import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../test/test-postgres.ts';
import { openStore, type Store } from '../store.ts';
import type { IdempotencyHold } from './idempotency.ts';

const RACES = 40;

let postgres: TestPostgres;
let store: Store;
/** The store of another control plane. */
let other: Store;

beforeAll(async () => {
  postgres = await startTestPostgres();
  const placement = { unreachableMs: 600_000, sandboxesPerTenant: 1000 };
  store = await openStore({ url: postgres.url, placement });
  other = await openStore({ url: postgres.url, placement });
  await store.tenants.findOrCreate('ada@example.com', 'usr_1');
  await store.workers.register({
    worker_id: 'w1',
    url: 'https://127.0.0.1:1',
    certificate: 'pem',
    version: '0',
    capacity: { vcpu: 2, memory_mib: 1_000_000, disk_mib: 1_000_000 },
    templates: [{ template: 'standard', image: 'i', ready: true, vcpu: 1, memory_mib: 512 }],
    sandboxes: [],
  });
});
afterAll(async () => {
  await other?.close();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

/** A request with this key. */
function keyed(key: string, body = 'a') {
  const hold = { tenantId: 'usr_1', operation: 'sandboxes.create', key, holder: randomUUID() };
  const claim = (lockSeconds = 60) =>
    store.idempotency.claim(hold, {
      bodyHash: createHash('sha256').update(body).digest(),
      subject: 'vm_1',
      lockSeconds,
      lifetimeSeconds: 86_400,
    });
  return { hold, claim };
}

test('an idempotency key is claimed once, then replayed, and refused for a different body', async () => {
  const requests = Array.from({ length: 5 }, () => keyed('k1'));
  const claims = await Promise.all(requests.map(({ claim }) => claim()));
  expect(claims.map((found) => found.kind).sort()).toEqual([
    'claimed',
    'running',
    'running',
    'running',
    'running',
  ]);
  const hold = requests[claims.findIndex(({ kind }) => kind === 'claimed')]?.hold;
  if (hold === undefined) throw new Error('nobody claimed the key');
  expect(await keyed('k1', 'b').claim()).toEqual({ kind: 'other_body' });
  const response = { status: 201, body: { vm_id: 'vm_1' } };
  await store.idempotency.complete(hold, response);
  expect(await keyed('k1').claim()).toEqual({ kind: 'done', response });
  expect(await store.idempotency.release(hold)).toBe(false);
  expect(await keyed('k1').claim()).toEqual({ kind: 'done', response });
  expect(await store.idempotency.removeExpired(86_400, 100)).toBe(0);
  expect(await keyed('k1').claim()).toEqual({ kind: 'done', response });
  await store.idempotency.removeExpired(-1, 100);
  expect(await keyed('k1', 'b').claim()).toEqual({ kind: 'claimed' });
});

test('exactly one request takes over an expired claim, and the earlier holder loses the key', async () => {
  const { idempotency } = store;
  const first = keyed('k2');
  await first.claim(-1);
  const retries = [keyed('k2'), keyed('k2')];
  const claims = await Promise.all(retries.map(({ claim }) => claim()));
  expect(claims.map((found) => found.kind).sort()).toEqual(['running', 'taken_over']);
  const taker = retries[claims.findIndex(({ kind }) => kind === 'taken_over')];

  expect(await idempotency.setSubject(first.hold, 'vm_2')).toBe(false);
  expect(await idempotency.release(first.hold)).toBe(false);
  await idempotency.complete(first.hold, { status: 201, body: 'of the first' });
  await idempotency.renew(first.hold, -1);
  expect(await keyed('k2').claim()).toEqual({ kind: 'running' });

  if (taker === undefined) throw new Error('nobody took the key over');
  expect(await idempotency.setSubject(taker.hold, 'vm_3')).toBe(true);
  await idempotency.renew(taker.hold, -1);
  const last = keyed('k2');
  expect(await last.claim(-1)).toEqual({ kind: 'taken_over', subject: 'vm_3' });
  expect(await idempotency.release(last.hold)).toBe(true);
  expect(await keyed('k2').claim()).toEqual({ kind: 'claimed' });
});

describe.each([
  {
    resource: 'sandbox',
    insert: async (id: string, hold: IdempotencyHold | undefined) => {
      const outcome = await other.sandboxes.reserve({
        vmId: id,
        tenantId: 'usr_1',
        placement: {
          template: 'standard',
          size: {},
          idle_timeout_seconds: 60,
          max_lifetime_seconds: 60,
        },
        metadata: {},
        persistenceUrl: undefined,
        hold,
      });
      if (outcome.placed === undefined) expect(outcome.refusal).toBe('key_taken_over');
      return outcome.placed !== undefined;
    },
    exists: async (id: string) => (await store.sandboxes.findAny(id)) !== undefined,
  },
  {
    resource: 'session',
    insert: async (id: string, hold: IdempotencyHold | undefined) => {
      const session = {
        sessionId: id,
        tenantId: 'usr_1',
        vmId: `vm_${id}`,
        agent: 'deictic' as const,
        agentVersion: undefined,
        appId: 'app',
        setId: 'set',
        app: undefined,
        template: 'standard',
        vendor: 'anthropic' as const,
        requestedModel: undefined,
        baseUrl: undefined,
        model: 'model',
        secrets: [],
        size: {},
        userId: 'ada',
        ttlSeconds: 60,
      };
      const lease = { holder: randomUUID(), seconds: 60 };
      const inserted = await other.sessions.insert(session, lease, { hold, most: 100 });
      return inserted !== 'key_taken_over';
    },
    exists: async (id: string) => (await store.sessions.find(id)) !== undefined,
  },
])('the insert of a $resource', ({ resource, insert, exists }) => {
  test('requires the hold', async () => {
    const earlier = keyed(`${resource} hold`);
    const holder = keyed(`${resource} hold`);
    const [id, unwanted] = [randomUUID(), randomUUID()];
    await earlier.claim(-1);
    await holder.claim();
    expect(await insert(unwanted, earlier.hold)).toBe(false);
    expect(await exists(unwanted)).toBe(false);
    expect(await insert(id, holder.hold)).toBe(true);
    expect(await exists(id)).toBe(true);
    expect(await insert(unwanted, keyed('nobody claimed it').hold)).toBe(false);
  });

  test('needs no hold without a key', async () => {
    const id = randomUUID();
    expect(await insert(id, undefined)).toBe(true);
    expect(await exists(id)).toBe(true);
  });

  test('comes before the takeover of the key, and is visible to it, or does not happen', async () => {
    for (let race = 0; race < RACES; race += 1) {
      const earlier = keyed(`${resource} ${race}`);
      const taker = keyed(`${resource} ${race}`);
      const id = randomUUID();
      await earlier.claim(-1);
      const [done, seen] = await Promise.all([
        insert(id, earlier.hold),
        taker.claim().then(({ kind }) => {
          expect(kind).toBe('taken_over');
          return exists(id);
        }),
      ]);
      expect(seen).toBe(done);
    }
  });
});
