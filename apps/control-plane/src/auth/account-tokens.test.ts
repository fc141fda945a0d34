import { ServiceError } from '@svc/contract';
import { decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { AccountTokens } from './account-tokens.ts';
import { SigningKeys } from './signing-keys.ts';

const ACCOUNT = { tenantId: 'usr_1', email: 'ada@example.com' };

let ledger: TestLedger;
let keys: SigningKeys;
let tokens: AccountTokens;

beforeAll(async () => {
  ledger = await startTestLedger();
  keys = new SigningKeys(ledger.store.signingKeys, [Buffer.alloc(32, 1)]);
  tokens = new AccountTokens(keys);
});
afterAll(() => ledger?.[Symbol.asyncDispose]());
afterEach(() => vi.useRealTimers());

/** A token like that of an account, signed with the current key, with these changes. */
async function forged(claims: object, header: object = {}): Promise<string> {
  const { kid, privateKey } = await keys.signingKey();
  const now = Math.floor(Date.now() / 1000);
  const genuine = {
    email: 'ada@example.com',
    iss: 'svc',
    aud: 'svc-account',
    sub: 'usr_1',
    jti: 'id',
    iat: now,
    exp: now + 60,
  };
  return new SignJWT({ ...genuine, ...claims })
    .setProtectedHeader({ alg: 'EdDSA', kid, ...header })
    .sign(privateKey);
}

test('a token names its account, its key and an hour, and is like no other', async () => {
  const token = await tokens.sign(ACCOUNT);
  const { kid } = await keys.signingKey();
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'EdDSA', kid, typ: 'JWT' });
  const claims = decodeJwt(token);
  expect(claims).toEqual({
    iss: 'svc',
    aud: 'svc-account',
    sub: 'usr_1',
    email: 'ada@example.com',
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    iat: expect.any(Number),
    exp: Number(claims.iat) + 3600,
  });
  expect(decodeJwt(await tokens.sign(ACCOUNT)).jti).not.toBe(claims.jti);
  expect(await tokens.verify(token)).toBe('usr_1');
});

test('a token is accepted for an hour', async () => {
  const token = await tokens.sign(ACCOUNT);
  const { iat = 0 } = decodeJwt(token);
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime((iat + 3599) * 1000);
  expect(await tokens.verify(token)).toBe('usr_1');
  vi.setSystemTime((iat + 3600) * 1000);
  await expect(tokens.verify(token)).rejects.toMatchObject({ code: 'unauthorized' });
});

describe('a token', () => {
  test('with every claim is accepted', async () => {
    expect(await tokens.verify(await forged({}))).toBe('usr_1');
  });

  test.each([
    ['of another issuer', { iss: 'other' }],
    ['for another audience', { aud: 'svc-session' }],
    ['without an account', { sub: undefined }],
    ['without an expiry', { exp: undefined }],
    ['without a time', { iat: undefined }],
    ['without an id', { jti: undefined }],
  ])('%s is refused', async (_which, claims) => {
    const refused = tokens.verify(await forged(claims));
    await expect(refused).rejects.toThrow(ServiceError);
    await expect(refused).rejects.toMatchObject({ code: 'unauthorized' });
  });

  test('of a key that is not the service’s is refused, whatever it calls itself', async () => {
    const { kid } = await keys.signingKey();
    const { privateKey } = await generateKeyPair('EdDSA');
    for (const header of [{ kid }, { kid: 'another' }, {}]) {
      const token = await new SignJWT(decodeJwt(await tokens.sign(ACCOUNT)))
        .setProtectedHeader({ alg: 'EdDSA', ...header })
        .sign(privateKey);
      await expect(tokens.verify(token)).rejects.toMatchObject({ code: 'unauthorized' });
    }
  });

  test('that names no key is refused, although the service has one', async () => {
    const token = await forged({}, { kid: undefined });
    await expect(tokens.verify(token)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  test('that is none is refused, and the cause is kept for the log', async () => {
    await expect(tokens.verify('a.b.c')).rejects.toMatchObject({
      code: 'unauthorized',
      cause: expect.any(Error),
    });
  });
});

test('a failure of the ledger is told as such, and not as a wrong token', async () => {
  const token = await tokens.sign(ACCOUNT);
  const failure = new ServiceError('database_unavailable');
  const fails = async () => Promise.reject(failure);
  const store = { youngerThan: fails, addUnlessYounger: fails };
  const without = new AccountTokens(new SigningKeys(store, [Buffer.alloc(32, 1)]));
  await expect(without.verify(token)).rejects.toBe(failure);
});
