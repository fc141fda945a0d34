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
    for (const header of [
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
});
