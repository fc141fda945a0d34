import { sign } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { mintHopToken } from './hop-tokens.ts';
import { createTokenMinter, createTokenVerifier } from './internal-tokens.ts';
import { generateKeyPair, type KeyPair } from './key-pair.ts';
import { findAmong, type KeyFinder, signToken } from './signed-tokens.ts';

const TYPE = 'svc-internal+jwt';
const refused = { code: 'unauthorized' };

let key: KeyPair;
let known: KeyFinder;

beforeAll(async () => {
  key = await generateKeyPair();
  known = findAmong(key);
});

afterEach(() => {
  vi.useRealTimers();
});

describe('internal tokens', () => {
  it('identify the caller to their audience', async () => {
    const mint = createTokenMinter(key, 'svc-control-plane');
    const verify = createTokenVerifier(known, 'worker-1');
    expect(await verify(`Bearer ${await mint('worker-1')}`)).toEqual({
      issuer: 'svc-control-plane',
    });
  });

  it('are looked up by the key and the issuer that they claim', async () => {
    const claimed: unknown[] = [];
    const verify = createTokenVerifier(async (claim) => {
      claimed.push(claim);
      return key.publicKey;
    }, 'b');
    await verify(`Bearer ${await createTokenMinter(key, 'a')('b')}`);
    expect(claimed).toEqual([{ issuer: 'a', keyId: key.id }]);
  });

  it('are refused by another audience, and with a key that the issuer does not have', async () => {
    const token = `Bearer ${await createTokenMinter(key, 'a')('worker-1')}`;
    await expect(createTokenVerifier(known, 'worker-2')(token)).rejects.toMatchObject(refused);
    const other = findAmong(await generateKeyPair());
    await expect(createTokenVerifier(other, 'worker-1')(token)).rejects.toMatchObject(refused);
    const { publicKey } = await generateKeyPair();
    const wrong = createTokenVerifier(async () => publicKey, 'worker-1');
    await expect(wrong(token)).rejects.toMatchObject(refused);
  });

  it('are accepted from a machine whose clock is off by more than a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const verify = createTokenVerifier(known, 'b');
    for (const seconds of [-70, 70]) {
      const now = Date.now();
      vi.setSystemTime(now + seconds * 1000);
      const token = await createTokenMinter(key, 'a')('b');
      vi.setSystemTime(now);
      expect(await verify(`Bearer ${token}`)).toEqual({ issuer: 'a' });
    }
  });

  it('are no tokens of another kind', async () => {
    const identity = {
      ...{ user_id: 'u', app_id: 'a', set_id: 's', chat_session_id: 'c', cua_enabled: false },
    };
    const hop = await mintHopToken(key, identity, 'worker-1');
    const verify = createTokenVerifier(known, 'worker-1');
    await expect(verify(`Bearer ${hop}`)).rejects.toMatchObject(refused);
  });

  it('are reused for half their lifetime and refused after it', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const mint = createTokenMinter(key, 'a');
    const verify = createTokenVerifier(known, 'b');
    const first = await mint('b');
    vi.setSystemTime(Date.now() + 20_000);
    expect(await mint('b')).toBe(first);
    vi.setSystemTime(Date.now() + 15_000);
    expect(await mint('b')).not.toBe(first);
    await verify(`Bearer ${first}`);
    vi.setSystemTime(Date.now() + 120_000);
    await expect(verify(`Bearer ${first}`)).rejects.toMatchObject(refused);
  });

  it('that are absent, unsigned or signed with the public key are refused', async () => {
    const verify = createTokenVerifier(known, 'b');
    const unsigned = `${btoa('{"alg":"none"}')}.${btoa('{"iss":"a","aud":"b"}')}.`;
    const confused = await new SignJWT({ iss: 'a', aud: 'b' })
      .setProtectedHeader({ alg: 'HS256', kid: key.id, typ: TYPE })
      .setIssuedAt()
      .setExpirationTime('60s')
      .sign(Buffer.from(key.publicKey.x, 'base64url'));
    const token = await createTokenMinter(key, 'a')('b');
    for (const header of [
      `x Bearer ${token}`,
      `Bearer ${token} x`,
      token,
      undefined,
      '',
      'Bearer ',
      'Basic x',
      `Bearer ${unsigned}`,
      `Bearer ${confused}`,
    ]) {
      await expect(verify(header)).rejects.toMatchObject(refused);
    }
  });

  it('are refused unless they have every claim and header', async () => {
    const verify = createTokenVerifier(known, 'b');
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: 'a', aud: 'b', iat: now, exp: now + 60 };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = (changes: object, header: object = {}) => {
      const text = `${part({ alg: 'EdDSA', kid: key.id, typ: TYPE, ...header })}.${part({ ...claims, ...changes })}`;
      const signature = sign(null, Buffer.from(text), key.privateKey);
      return `${text}.${signature.toString('base64url')}`;
    };
    expect(await verify(`Bearer ${signed({})}`)).toEqual({ issuer: 'a' });
    const refusals = [
      signed({ iss: undefined }),
      signed({ aud: undefined }),
      signed({ iat: undefined }),
      signed({ exp: undefined }),
      signed({ iat: now - 160, exp: now + 600 }),
      signed({ iat: now + 100, exp: now + 160 }),
      signed({}, { kid: undefined }),
      signed({}, { typ: undefined }),
      signed({}, { alg: 'none' }),
    ];
    for (const token of refusals) {
      await expect(verify(`Bearer ${token}`)).rejects.toMatchObject(refused);
    }
  });

  it('pass on the failure of the lookup of a key', async () => {
    const verify = createTokenVerifier(async () => {
      throw new Error('no database');
    }, 'b');
    const token = await signToken(key, {
      type: TYPE,
      issuer: 'a',
      audience: 'b',
      lifetimeSeconds: 9,
    });
    await expect(verify(`Bearer ${token}`)).rejects.toThrow('no database');
  });

  it('are kept for a bounded number of audiences', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const mint = createTokenMinter(key, 'a');
    const first = mint('w0');
    for (let index = 1; index < 1024; index += 1) mint(`w${index}`);
    expect(mint('w0')).toBe(first);
    mint('w1024');
    const again = mint('w0');
    expect(again).not.toBe(first);
    vi.setSystemTime(Date.now() + 29_999);
    expect(mint('w0')).toBe(again);
    vi.setSystemTime(Date.now() + 1);
    expect(mint('w0')).not.toBe(again);
  });
});
