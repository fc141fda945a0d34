import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

let count = 0;
const newEmail = () => `new${++count}@example.com`;
const request = (email: unknown) => harness.call('POST', '/v1/tenants', { json: { email } });
const verify = (email: unknown, code: unknown) =>
  harness.call('POST', '/v1/tenants/verify', { json: { email, code } });

describe('signing up', () => {
  test('a code from the outbox is exchanged for an account, a key and a token', async () => {
    const account = await harness.signUp('ada@example.com');
    expect(account.body).toMatchObject({
      tenant_id: expect.stringMatching(/^usr_[0-9a-f]{32}$/),
      key_id: expect.stringMatching(/^key_[0-9a-f]{32}$/),
      api_key: expect.stringMatching(/^svc_[0-9a-f]{64}$/),
      prefix: account.key.slice(0, 12),
      plan_tier: 'free',
    });
    for (const key of [account.key, account.token]) {
      const me = await harness.call('GET', '/v1/tenants/me', { key });
      expect(me.body).toMatchObject({
        tenant_id: account.tenantId,
        email: 'ada@example.com',
        plan: 'free',
      });
    }
  });

  test('addresses are normalized, and one address has one account', async () => {
    const first = await harness.signUp('bob@example.com');
    expect((await request('  BOB@Example.COM ')).status).toBe(200);
    const second = await verify('Bob@example.com', await harness.lastCode('bob@example.com'));
    expect(second.body.tenant_id).toBe(first.tenantId);
    expect(second.body.key_id).not.toBe(first.body.key_id);
  });

  test('the answer is the same whether or not the account exists', async () => {
    const known = await harness.signUp();
    const answers = [await request(known.email), await request(newEmail())];
    expect(answers[0]?.text).toBe(answers[1]?.text);
  });

  test.each([
    [undefined],
    [null],
    [''],
    ['nobody'],
    ['a@b'],
    ['a b@example.com'],
    ['a\0b@example.com'],
    ['\ud800@example.com'],
    [42],
    [`${'x'.repeat(300)}@example.com`],
    ['a@example.com\r\nBcc: b@example.com'],
  ])('address %j is 400', async (email) => {
    expect(await request(email)).toMatchObject({ status: 400, body: { code: 'email_invalid' } });
  });

  test('one address gets at most three codes an hour', async () => {
    const email = newEmail();
    for (let sent = 0; sent < 3; sent += 1) expect((await request(email)).status).toBe(200);
    const refused = await request(email);
    expect(refused).toMatchObject({ status: 429, body: { code: 'otp_rate_limited' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3500);
  });

  test('mail that cannot be written is 500, and its code is invalid', async () => {
    await using broken = await Harness.start({ SVC_SMTP_URL: 'smtp://127.0.0.1:1' });
    const answer = await broken.call('POST', '/v1/tenants', { json: { email: 'a@example.com' } });
    expect(answer).toMatchObject({ status: 500, body: { code: 'email_send_failed' } });
    const { rows } = await broken.sql.query('select * from otp_codes');
    expect(rows).toEqual([]);
  });

  test('one network address can request a limited number of codes an hour', async () => {
    await using limited = await Harness.start({ SVC_LIMIT_OTP_PER_IP_PER_HOUR: '2' });
    const ask = (email: string) => limited.call('POST', '/v1/tenants', { json: { email } });
    expect((await ask('a@example.com')).status).toBe(200);
    expect((await ask('b@example.com')).status).toBe(200);
    const refused = await ask('c@example.com');
    expect(refused).toMatchObject({ status: 429, body: { code: 'ip_rate_limited' } });
    expect(refused.headers.get('retry-after')).toBeTruthy();
  });
});

describe('codes', () => {
  test.each([['12345'], ['abcdef'], [''], ['1234567'], ['１２３４５６']])(
    'code %j is 401',
    async (code) => {
      expect(await verify('ada@example.com', code)).toMatchObject({
        status: 401,
        body: { code: 'otp_invalid' },
      });
    },
  );

  test('a code works once', async () => {
    const email = newEmail();
    await request(email);
    const code = await harness.lastCode(email);
    const answers = await Promise.all(Array.from({ length: 4 }, () => verify(email, code)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 401, 401, 401]);
  });

  test('a new code invalidates the previous one', async () => {
    const email = newEmail();
    await request(email);
    const first = await harness.lastCode(email);
    await request(email);
    const second = await harness.lastCode(email);
    if (first !== second) expect((await verify(email, first)).status).toBe(401);
    expect((await verify(email, second)).status).toBe(200);
  });

  test('five wrong guesses invalidate a code', async () => {
    const email = newEmail();
    await request(email);
    const code = await harness.lastCode(email);
    const wrong = code === '000000' ? '000001' : '000000';
    for (let tries = 0; tries < 5; tries += 1)
      expect((await verify(email, wrong)).status).toBe(401);
    expect((await verify(email, code)).status).toBe(401);
  });

  test('a code expires', async () => {
    const email = newEmail();
    await request(email);
    await harness.sql.query('update otp_codes set expires_at = now() where email = $1', [email]);
    expect((await verify(email, await harness.lastCode(email))).status).toBe(401);
  });

  test('a code is valid for its own address only', async () => {
    const [email, other] = [newEmail(), newEmail()];
    await request(email);
    await request(other);
    const code = await harness.lastCode(email);
    if (code !== (await harness.lastCode(other))) {
      expect((await verify(other, code)).status).toBe(401);
    }
  });

  test('codes and keys are stored as hashes only', async () => {
    const email = newEmail();
    await request(email);
    const code = await harness.lastCode(email);
    const { rows } = await harness.sql.query('select code_hash from otp_codes where email = $1', [
      email,
    ]);
    expect(rows[0].code_hash.toString('latin1')).not.toContain(code);
    const { key } = await harness.signUp();
    const keys = await harness.sql.query('select * from api_keys');
    expect(JSON.stringify(keys.rows)).not.toContain(key);
  });
});

describe('credentials', () => {
  const me = (authorization?: string) =>
    harness.call('GET', '/v1/tenants/me', {
      headers: authorization === undefined ? {} : { authorization },
    });

  test.each([
    [undefined],
    [''],
    ['Bearer'],
    ['Bearer '],
    ['Basic YTpi'],
    ['Bearer svc_nope'],
    [`Bearer svc_${'0'.repeat(64)}`],
    ['Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c3JfMSJ9.'],
  ])('%j is 401', async (authorization) => {
    const answer = await me(authorization);
    expect(answer).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
  });

  test('a revoked key is refused immediately', async () => {
    const { key, body } = await harness.signUp();
    expect((await me(`Bearer ${key}`)).status).toBe(200);
    await harness.sql.query('update api_keys set revoked_at = now() where key_id = $1', [
      body.key_id,
    ]);
    expect((await me(`Bearer ${key}`)).status).toBe(401);
  });

  test('the account token survives a restart and does not give access to sandboxes', async () => {
    const { token } = await harness.signUp();
    await harness.restart();
    expect((await me(`Bearer ${token}`)).status).toBe(200);
    expect((await harness.call('GET', '/v1/sandboxes', { key: token })).status).toBe(401);
  });

  test('a token that was tampered with is 401', async () => {
    const { token } = await harness.signUp();
    const [header, , signature] = token.split('.');
    const claims = btoa(JSON.stringify({ sub: 'usr_1', aud: 'svc-account', iss: 'svc', exp: 2e9 }));
    expect((await me(`Bearer ${header}.${claims}.${signature}`)).status).toBe(401);
  });
});
