import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

const me = (key: string) => harness.call('GET', '/v1/tenants/me', { key });

describe('the keys of the account routes', () => {
  test('are created with 201, work immediately, and are listed without their secret', async () => {
    const { token, tenantId } = await harness.signUp();
    const made = await harness.call('POST', '/v1/api-keys', { key: token, json: { name: 'ci' } });
    expect(made.status).toBe(201);
    const key = String(made.body.key);
    expect(key).toMatch(/^svc_live_[0-9A-Za-z]{43}$/);
    expect(made.body).toMatchObject({ prefix: key.slice(0, 16), name: 'ci' });
    expect((await me(key)).body.tenant_id).toBe(tenantId);
    const list = await harness.call('GET', '/v1/api-keys', { key: token });
    expect(list.body.api_keys).toHaveLength(2);
    expect(list.body.api_keys).toContainEqual({
      key_id: made.body.key_id,
      name: 'ci',
      prefix: key.slice(0, 16),
      plan_tier: 'free',
      revoked: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      last_used_at: expect.any(String),
    });
    expect(list.text).not.toContain(key);
  });

  test('need no body, and reject names that cannot be displayed', async () => {
    const { token } = await harness.signUp();
    const create = (json: unknown) =>
      harness.call(
        'POST',
        '/v1/api-keys',
        json === undefined ? { key: token } : { key: token, json },
      );
    expect((await create(undefined)).status).toBe(201);
    expect((await create({})).status).toBe(201);
    expect((await create({ name: 'x'.repeat(64) })).status).toBe(201);
    for (const name of ['', 'x'.repeat(65), 'a\nb', 'a\0b', '\ud800', 7, null]) {
      expect((await create({ name })).status, JSON.stringify(name)).toBe(400);
    }
  });

  test('are revoked with 200, immediately and repeatably, and stay listed', async () => {
    const { token, key, body } = await harness.signUp();
    const revoke = () => harness.call('DELETE', `/v1/api-keys/${body.key_id}`, { key: token });
    expect((await me(key)).status).toBe(200);
    expect(await revoke()).toMatchObject({ status: 200, body: { status: 'revoked' } });
    expect((await me(key)).status).toBe(401);
    expect((await revoke()).status).toBe(200);
    const list = await harness.call('GET', '/v1/api-keys', { key: token });
    expect(list.body.api_keys).toMatchObject([{ key_id: body.key_id, revoked: true }]);
  });

  test('of another account are 404, like unknown ones', async () => {
    const [mine, other] = [await harness.signUp(), await harness.signUp()];
    for (const id of [String(other.body.key_id), 'key_nope', '%00', 'x'.repeat(300)]) {
      const answer = await harness.call('DELETE', `/v1/api-keys/${id}`, { key: mine.token });
      expect(answer, id).toMatchObject({ status: 404, body: { code: 'api_key_not_found' } });
    }
    expect((await me(other.key)).status).toBe(200);
  });
});

describe('the keys of the tenant routes', () => {
  test('are created with 200 by another key, and revoked with 204 and no body', async () => {
    const { key } = await harness.signUp();
    const made = await harness.call('POST', '/v1/tenants/me/api-keys', {
      key,
      json: { name: 'laptop' },
    });
    expect(made).toMatchObject({ status: 200, body: { plan_tier: 'free', name: 'laptop' } });
    const second = String(made.body.api_key);
    expect(second).toMatch(/^svc_[0-9a-f]{64}$/);
    expect(made.body.prefix).toBe(second.slice(0, 12));
    const list = await harness.call('GET', '/v1/tenants/me/api-keys', { key: second });
    expect(list.body.keys).toHaveLength(2);
    const ended = await harness.call('DELETE', `/v1/tenants/me/api-keys/${made.body.key_id}`, {
      key,
    });
    expect(ended).toMatchObject({ status: 204, text: '' });
    expect((await me(second)).status).toBe(401);
  });

  test('of another tenant are 404', async () => {
    const [mine, other] = [await harness.signUp(), await harness.signUp()];
    const path = `/v1/tenants/me/api-keys/${other.body.key_id}`;
    expect(await harness.call('DELETE', path, { key: mine.key })).toMatchObject({
      status: 404,
      body: { code: 'api_key_not_found' },
    });
  });
});

test('a key revoked on one control plane is immediately refused on every other', async () => {
  const { key, token, body } = await harness.signUp();
  const plane = await harness.startAnother();
  try {
    expect((await harness.call('GET', '/v1/tenants/me', { key, plane })).status).toBe(200);
    await harness.call('DELETE', `/v1/api-keys/${body.key_id}`, { key: token });
    expect((await harness.call('GET', '/v1/tenants/me', { key, plane })).status).toBe(401);
    expect((await harness.call('GET', '/v1/api-keys', { key: token, plane })).status).toBe(200);
  } finally {
    await plane.close();
  }
});

test('the last use is recorded at most once a minute', async () => {
  const { key, token, body } = await harness.signUp();
  const lastUse = async () => {
    const { rows } = await harness.sql.query('select * from api_keys where key_id = $1', [
      body.key_id,
    ]);
    return rows[0].last_used_at?.getTime();
  };
  expect(await lastUse()).toBeUndefined();
  await Promise.all(Array.from({ length: 5 }, () => me(key)));
  const first = await lastUse();
  expect(first).toBeGreaterThan(0);
  await me(key);
  expect(await lastUse()).toBe(first);
  await harness.sql.query(
    "update api_keys set last_used_at = now() - interval '61 seconds' where key_id = $1",
    [body.key_id],
  );
  await me(key);
  expect(await lastUse()).toBeGreaterThanOrEqual(Number(first));
  const list = await harness.call('GET', '/v1/api-keys', { key: token });
  expect(list.body.api_keys).toMatchObject([{ last_used_at: expect.any(String) }]);
});
