import { hkdfSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { Secret } from '../secret.ts';
import { createHopTokenVerifier, mintHopToken } from './hop-tokens.ts';
import { createTokenMinter } from './internal-tokens.ts';
import { deriveControlPlaneKey, generateKeyPair } from './key-pair.ts';
import { SessionTokens, sessionTokenKey } from './session-tokens.ts';
import { findAmong, signToken } from './signed-tokens.ts';

const secret = new Secret('a cluster secret of thirty-two bytes');
const identity = {
  user_id: 'usr_1',
  app_id: 'svc-sandbox',
  set_id: 'default',
  chat_session_id: '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
  cua_enabled: false,
};
const refused = expect.objectContaining({ code: 'unauthorized' });
const soon = () => new Date(Math.ceil(Date.now() / 1000) * 1000 + 60_000);

test('a session token yields its claims', async () => {
  const expiresAt = soon();
  const tokens = new SessionTokens([sessionTokenKey(secret)]);
  expect(await tokens.verify(await tokens.mint(identity, expiresAt))).toMatchObject({
    ...identity,
    exp: expiresAt.getTime() / 1000,
  });
});

test('a session token is refused when it is expired, foreign, absent or malformed', async () => {
  const tokens = new SessionTokens([sessionTokenKey(secret)]);
  const old = await tokens.mint(identity, new Date(Date.now() - 60_000));
  const other = new SessionTokens([
    sessionTokenKey(new Secret('another secret of thirty-two bytes..')),
  ]);
  const hop = await mintHopToken(await deriveControlPlaneKey(secret), identity, 'w1');
  for (const token of [old, await other.mint(identity, soon()), hop, undefined, '', 'a.b.c']) {
    await expect(tokens.verify(token)).rejects.toEqual(refused);
  }
});

test('a session token is refused without an expiry, or with another algorithm', async () => {
  const label = 'svc session tokens v1 runtime';
  const key = new Uint8Array(hkdfSync('sha256', secret.reveal(), '', label, 32));
  const tokens = new SessionTokens([sessionTokenKey(secret)]);
  const exp = Math.floor(Date.now() / 1000) + 60;
  const signed = (claims: object, alg = 'HS256') =>
    new SignJWT({ ...identity, ...claims }).setProtectedHeader({ alg }).sign(key);
  expect(await tokens.verify(await signed({ exp }))).toMatchObject(identity);
  const refusals = [signed({}), signed({ exp }, 'HS512'), signed({ exp, user_id: 7 })];
  for (const token of refusals) await expect(tokens.verify(await token)).rejects.toEqual(refused);
});

test('a hop token lets the bearer attach at one worker for a minute', async () => {
  const key = await generateKeyPair();
  const before = Date.now() / 1000;
  const token = await mintHopToken(key, identity, 'w1');
  const claims = await createHopTokenVerifier(findAmong(key), 'w1')(token);
  expect(claims).toMatchObject(identity);
  expect(claims.exp - before).toBeGreaterThan(55);
  expect(claims.exp - Date.now() / 1000).toBeLessThan(65);
  await expect(createHopTokenVerifier(findAmong(key), 'w2')(token)).rejects.toEqual(refused);
});

test('a hop token is refused from anybody but a control plane', async () => {
  const key = await generateKeyPair();
  const verify = createHopTokenVerifier(findAmong(key), 'w1');
  const content = {
    ...{ type: 'svc-hop+jwt', issuer: 'svc-control-plane', audience: 'w1', lifetimeSeconds: 60 },
    claims: identity,
  };
  expect(await verify(await signToken(key, content))).toMatchObject(identity);
  const refusals = [
    signToken(await generateKeyPair(), content),
    signToken(key, { ...content, issuer: 'w1' }),
    signToken(key, { ...content, type: 'svc-internal+jwt' }),
    signToken(key, { ...content, lifetimeSeconds: -100 }),
    signToken(key, { ...content, claims: { ...identity, user_id: 7 } }),
    createTokenMinter(key, 'svc-control-plane')('w1'),
    new SessionTokens([sessionTokenKey(secret)]).mint(identity, soon()),
  ];
  for (const token of [undefined, '', 'a.b.c', ...refusals]) {
    await expect(verify(await token)).rejects.toEqual(refused);
  }
});
