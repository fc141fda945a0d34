import { ServiceError } from '@svc/contract';
import { createLogger } from '@svc/service-kit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import { ApiKeys } from './api-keys.ts';

const BY_ACCOUNT = { tenantId: 't' };
const BY_KEY = { tenantId: 't', keyId: 'key_caller' };
const MOST = 3;

let ledger: TestLedger;
let keys: ApiKeys;

beforeAll(async () => {
  ledger = await startTestLedger();
  const { store } = ledger;
  keys = new ApiKeys(store, new AuditTrail(store.audit, createLogger({ level: 'silent' })), MOST);
});
afterAll(() => ledger?.[Symbol.asyncDispose]());
beforeEach(() => ledger.sql.query('truncate api_keys, audit_records'));

const audited = async () =>
  (await ledger.sql.query('select tenant_id, event, details from audit_records order by id')).rows;

describe.each([
  {
    routes: 'tenant',
    create: async (name?: string) => {
      const key = await keys.createTenantKey(BY_KEY, name);
      return { made: key, secret: key.api_key };
    },
    form: /^svc_[0-9a-f]{64}$/,
    prefixChars: 12,
    shown: { plan_tier: 'free', created_at: expect.stringMatching(/^\d{4}-.*Z$/) },
    by: 'key_caller',
  },
  {
    routes: 'account',
    create: async (name?: string) => {
      const key = await keys.createLiveKey(BY_ACCOUNT, name);
      return { made: key, secret: key.key };
    },
    form: /^svc_live_[0-9A-Za-z]{43}$/,
    prefixChars: 16,
    shown: {},
    by: 'account',
  },
])('a key of the $routes routes', ({ routes, create, form, prefixChars, shown, by }) => {
  test('is shown once, and is its owner’s', async () => {
    const { made, secret } = await create('laptop');
    expect(secret).toMatch(form);
    expect(made).toEqual({
      key_id: expect.stringMatching(/^key_[0-9a-f]{32}$/),
      name: 'laptop',
      prefix: secret.slice(0, prefixChars),
      [routes === 'tenant' ? 'api_key' : 'key']: secret,
      ...shown,
    });
    expect(await ledger.store.apiKeys.findOwner(secret)).toEqual({
      tenantId: 't',
      keyId: made.key_id,
    });
    expect(await audited()).toEqual([
      { tenant_id: 't', event: 'api_key_created', details: { key_id: made.key_id, by } },
    ]);
  });

  test('needs no name, and is like no other', async () => {
    const [one, two] = [await create(), await create()];
    expect(one.made).not.toHaveProperty('name');
    expect(one.secret).not.toBe(two.secret);
    expect(one.made.key_id).not.toBe(two.made.key_id);
  });

  test('is refused at the limit, and leaves no record', async () => {
    for (let count = 0; count < MOST; count += 1) await create();
    const refused = create();
    await expect(refused).rejects.toThrow(ServiceError);
    await expect(refused).rejects.toMatchObject({ code: 'api_key_limit_reached' });
    expect(await audited()).toHaveLength(MOST);
  });
});

describe('a list', () => {
  test('has every key from the newest, also those that are revoked, with their last use', async () => {
    const first = await keys.createTenantKey(BY_KEY, 'first');
    const second = await keys.createLiveKey(BY_KEY);
    await keys.revoke(BY_KEY, first.key_id);
    await ledger.store.apiKeys.findOwner(second.key);
    const date = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const common = { plan_tier: 'free', created_at: date };
    expect(await keys.list('t')).toEqual([
      {
        ...common,
        key_id: second.key_id,
        prefix: second.prefix,
        revoked: false,
        last_used_at: date,
      },
      {
        ...common,
        key_id: first.key_id,
        name: 'first',
        prefix: first.prefix,
        revoked: true,
      },
    ]);
  });

  test('of an account that made and revoked many keys has the last hundred, and no more are stored', async () => {
    const kept = await keys.createTenantKey(BY_KEY, 'kept');
    await ledger.sql.query(`
      insert into api_keys (key_id, tenant_id, secret_hash, prefix, revoked_at, created_at)
      select 'key_' || n, 't', sha256(n::text::bytea), '', now() - n * interval '1 hour', now() - interval '1 year'
      from generate_series(1, 400) as n`);
    const revoked = Array.from({ length: 100 }, (_, index) => `key_${index + 1}`);
    const listed = (await keys.list('t')).map(({ key_id: id }) => id);
    expect(listed.sort()).toEqual([...revoked, kept.key_id].sort());
    await keys.createTenantKey(BY_KEY);
    const { rows } = await ledger.sql.query(
      'select key_id from api_keys where revoked_at is not null',
    );
    expect(rows.map(({ key_id: id }) => id).sort()).toEqual(revoked.sort());
  });

  test('of an account that is gone is refused, and so is a new key', async () => {
    const gone = { code: 'unauthorized' };
    await expect(keys.list('gone')).rejects.toMatchObject(gone);
    await expect(keys.createLiveKey({ tenantId: 'gone' })).rejects.toMatchObject(gone);
  });
});

describe('a revocation', () => {
  test('is immediate and is recorded once', async () => {
    const { key_id: id, api_key: secret } = await keys.createTenantKey(BY_KEY);
    await ledger.sql.query('truncate audit_records');
    const recorded = [
      { tenant_id: 't', event: 'api_key_revoked', details: { key_id: id, by: 'account' } },
    ];
    for (let time = 0; time < 2; time += 1) {
      await keys.revoke(BY_ACCOUNT, id);
      expect(await ledger.store.apiKeys.findOwner(secret)).toBeUndefined();
      expect(await audited()).toEqual(recorded);
    }
  });

  test.each(['key_unknown', 'key_\0'])('of %j is refused', async (id) => {
    const refused = keys.revoke(BY_KEY, id);
    await expect(refused).rejects.toThrow(ServiceError);
    await expect(refused).rejects.toMatchObject({ code: 'api_key_not_found' });
    expect(await audited()).toEqual([]);
  });
});
