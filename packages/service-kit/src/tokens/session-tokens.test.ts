import { hkdfSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { Secret } from '../secret.ts';
import { SessionTokens } from './session-tokens.ts';

const secret = new Secret('a cluster secret of thirty-two bytes');
const identity = {
  user_id: 'usr_1',
  app_id: 'svc-sandbox',
  set_id: 'default',
  chat_session_id: '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
  cua_enabled: false,
};
const refused = expect.objectContaining({ code: 'unauthorized' });

test('yields its claims only to its own audience', async () => {
  const runtime = new SessionTokens(secret, 'runtime');
  const expiresAt = new Date(Math.ceil(Date.now() / 1000) * 1000 + 60_000);
  const token = await runtime.mint(identity, expiresAt);
  expect(await runtime.verify(token)).toMatchObject({
    ...identity,
    exp: expiresAt.getTime() / 1000,
  });
  await expect(new SessionTokens(secret, 'worker').verify(token)).rejects.toEqual(refused);
});

test('refuses an expired, foreign, absent or malformed token', async () => {
  const tokens = new SessionTokens(secret, 'worker');
  const old = await tokens.mint(identity, new Date(Date.now() - 60_000));
  const other = new SessionTokens(new Secret('another secret of thirty-two bytes..'), 'worker');
  for (const token of [old, await other.mint(identity), undefined, '', 'a.b.c']) {
    await expect(tokens.verify(token)).rejects.toEqual(refused);
  }
});

test('gives a hop token a lifetime of one minute', async () => {
  const tokens = new SessionTokens(secret, 'worker');
  const before = Date.now() / 1000;
  const { exp } = await tokens.verify(await tokens.mint(identity));
  expect(exp - before).toBeGreaterThan(55);
  expect(exp - Date.now() / 1000).toBeLessThan(65);
});

test('refuses a token without an expiry, or of another algorithm', async () => {
  const label = 'svc session tokens v1 worker';
  const key = new Uint8Array(hkdfSync('sha256', secret.reveal(), '', label, 32));
  const tokens = new SessionTokens(secret, 'worker');
  const exp = Math.floor(Date.now() / 1000) + 60;
  const signed = (claims: object, alg = 'HS256') =>
    new SignJWT({ ...identity, ...claims }).setProtectedHeader({ alg }).sign(key);
  expect(await tokens.verify(await signed({ exp }))).toMatchObject(identity);
  const refusals = [signed({}), signed({ exp }, 'HS512'), signed({ exp, user_id: 7 })];
  for (const token of refusals) await expect(tokens.verify(await token)).rejects.toEqual(refused);
});
