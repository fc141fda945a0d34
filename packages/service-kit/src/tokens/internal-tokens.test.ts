import { hkdfSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Secret } from '../secret.ts';
import { createTokenMinter, createTokenVerifier } from './internal-tokens.ts';

const secret = new Secret('s'.repeat(40));
const refused = { code: 'unauthorized' };

afterEach(() => {
  vi.useRealTimers();
});

describe('internal tokens', () => {
  it('identify the caller to their audience', async () => {
    const mint = createTokenMinter(secret, 'svc-control-plane');
    const verify = createTokenVerifier(secret, 'worker-1');
    expect(await verify(`Bearer ${await mint('worker-1')}`)).toEqual({
      issuer: 'svc-control-plane',
    });
  });

  it('are refused by another audience and under another secret', async () => {
    const token = `Bearer ${await createTokenMinter(secret, 'a')('worker-1')}`;
    await expect(createTokenVerifier(secret, 'worker-2')(token)).rejects.toMatchObject(refused);
    const other = new Secret('t'.repeat(40));
    await expect(createTokenVerifier(other, 'worker-1')(token)).rejects.toMatchObject(refused);
  });

  it('are reused for half their lifetime and refused after it', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const mint = createTokenMinter(secret, 'a');
    const verify = createTokenVerifier(secret, 'b');
    const first = await mint('b');
    vi.setSystemTime(Date.now() + 20_000);
    expect(await mint('b')).toBe(first);
    vi.setSystemTime(Date.now() + 15_000);
    expect(await mint('b')).not.toBe(first);
    await verify(`Bearer ${first}`);
    vi.setSystemTime(Date.now() + 40_000);
    await expect(verify(`Bearer ${first}`)).rejects.toMatchObject(refused);
  });

  it('that are absent, unsigned or signed with another key are refused', async () => {
    const verify = createTokenVerifier(secret, 'b');
    const unsigned = `${btoa('{"alg":"none"}')}.${btoa('{"iss":"a","aud":"b"}')}.`;
    const raw = new TextEncoder().encode(secret.reveal());
    const underived = await new SignJWT({ iss: 'a', aud: 'b' })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuedAt()
      .setExpirationTime('60s')
      .sign(raw);
    const token = await createTokenMinter(secret, 'a')('b');
    for (const header of [
      `x Bearer ${token}`,
      `Bearer ${token} x`,
      token,
      undefined,
      '',
      'Bearer ',
      'Basic x',
      `Bearer ${unsigned}`,
      `Bearer ${underived}`,
    ]) {
      await expect(verify(header)).rejects.toMatchObject(refused);
    }
  });

  it('are refused unless they have every claim and the one algorithm', async () => {
    // Components of another version derive the same key.
    const label = 'svc internal tokens v1';
    const key = new Uint8Array(hkdfSync('sha256', secret.reveal(), '', label, 32));
    const verify = createTokenVerifier(secret, 'b');
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: 'a', aud: 'b', iat: now, exp: now + 60 };
    const signed = (changes: object, alg = 'HS256') =>
      new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg }).sign(key);
    expect(await verify(`Bearer ${await signed({})}`)).toEqual({ issuer: 'a' });
    const refusals = [
      signed({ iss: undefined }),
      signed({ aud: undefined }),
      signed({ iat: undefined }),
      signed({ exp: undefined }),
      signed({ iat: now - 90, exp: now + 600 }),
      signed({}, 'HS512'),
    ];
    for (const token of refusals) {
      await expect(verify(`Bearer ${await token}`)).rejects.toMatchObject(refused);
    }
  });

  it('are kept for a bounded number of audiences', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const mint = createTokenMinter(secret, 'a');
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
