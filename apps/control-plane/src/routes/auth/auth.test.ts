import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

const post = (path: string, json: unknown) => harness.call('POST', path, { json });

describe('sign-in', () => {
  test.each([
    ['/v1/auth/login', 200],
    ['/v1/auth/register', 201],
    ['/v1/tenants', 200],
  ])('%s answers %i and its code makes the account', async (path, status) => {
    const email = `via${status}${path.length}@example.com`;
    const asked = await post(path, { email });
    expect(asked).toMatchObject({ status, body: { message: expect.any(String) } });
    const code = await harness.lastCode(email);
    const answer = await post('/v1/auth/verify-otp', { email, code });
    expect(answer).toMatchObject({ status: 200, body: { email } });
    expect(Object.keys(answer.body).sort()).toEqual(['email', 'token', 'user_id']);
    const me = await harness.call('GET', '/v1/tenants/me', { key: String(answer.body.token) });
    expect(me.body).toMatchObject({ tenant_id: answer.body.user_id, email });
    expect((await post('/v1/auth/verify-otp', { email, code })).status).toBe(401);
  });

  test.each([['/v1/auth/login'], ['/v1/auth/register']])(
    '%s rejects an invalid address with 400',
    async (path) => {
      for (const email of [undefined, null, 'nobody', 42, '']) {
        expect(await post(path, { email })).toMatchObject({
          status: 400,
          body: { code: 'email_invalid' },
        });
      }
    },
  );

  test('all three routes share the hourly limit of an address, and answer the same for any address', async () => {
    const { email } = await harness.signUp();
    const known = await post('/v1/auth/login', { email });
    const unknown = await post('/v1/auth/login', { email: 'never-seen@example.com' });
    expect(known.text).toBe(unknown.text);
    expect((await post('/v1/auth/register', { email })).status).toBe(201);
    for (const path of ['/v1/auth/login', '/v1/auth/register', '/v1/tenants']) {
      const refused = await post(path, { email });
      expect(refused).toMatchObject({ status: 429, body: { code: 'otp_rate_limited' } });
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3500);
    }
  });

  test('a wrong code is 401, in any form and for any address', async () => {
    const wrong = { status: 401, body: { code: 'otp_invalid' } };
    for (const code of ['000000', 'x', '', '1234567']) {
      expect(await post('/v1/auth/verify-otp', { email: 'no@example.com', code })).toMatchObject(
        wrong,
      );
    }
    expect(await post('/v1/auth/verify-otp', { email: 'nobody', code: '123456' })).toMatchObject(
      wrong,
    );
    expect((await post('/v1/auth/verify-otp', { code: '123456' })).status).toBe(400);
  });
});

describe('the account token', () => {
  test('has the documented claims and lives for an hour', async () => {
    const { token, tenantId, email } = await harness.signUp();
    expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'EdDSA', kid: expect.any(String) });
    const claims = decodeJwt(token);
    expect(claims).toMatchObject({ iss: 'svc', aud: 'svc-account', sub: tenantId, email });
    expect(Number(claims.exp) - Number(claims.iat)).toBe(3600);
    expect(claims.jti).toBeTruthy();
  });

  test('is signed by a key that the database stores encrypted', async () => {
    await harness.signUp();
    const { rows } = await harness.sql.query('select * from signing_keys');
    expect(rows).toHaveLength(1);
    expect(rows[0].sealed.toString('latin1')).not.toContain('Ed25519');
  });
});
