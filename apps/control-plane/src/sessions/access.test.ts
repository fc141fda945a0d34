import { Secret, SessionTokens, sessionTokenKey } from '@svc/service-kit';
import { expect, test } from 'vitest';
import { type AccessFacts, SessionAccessIssuer, sandboxFacts } from './access.ts';

const TOKENS = new SessionTokens([
  sessionTokenKey(new Secret('a cluster secret of thirty-two bytes')),
]);
const issuer = new SessionAccessIssuer(TOKENS, () => 'wss://runtime.example.com');
/** A whole second, because tokens have no smaller unit. */
const expiresAt = new Date(Math.ceil(Date.now() / 1000) * 1000 + 60_000);

const facts = (changes: Partial<AccessFacts> = {}): AccessFacts => ({
  session_id: '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
  tenant_id: 'usr_1',
  app_id: 'my-app',
  set_id: 'my-set',
  template: 'standard',
  expires_at: expiresAt,
  ...changes,
});

test('the access to a session is its WebSocket, with a token for the account until the session expires', async () => {
  const access = await issuer.grant(facts());
  expect(access).toEqual({
    chat_session_id: '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
    jwt: expect.any(String),
    connect_url: 'wss://runtime.example.com/v1/sessions/019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b/ws',
    expires_at: expiresAt.toISOString(),
  });
  expect(await TOKENS.verify(access.jwt)).toEqual({
    user_id: 'usr_1',
    app_id: 'my-app',
    set_id: 'my-set',
    chat_session_id: '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
    cua_enabled: false,
    exp: expiresAt.getTime() / 1000,
  });
  expect(await issuer.grant(facts())).toEqual(access);
});

test.each([
  ['cua', true],
  ['browser', false],
])('a token for %s lets its holder control the desktop: %s', async (template, isEnabled) => {
  const { jwt } = await issuer.grant(facts({ template }));
  expect(await TOKENS.verify(jwt)).toMatchObject({ cua_enabled: isEnabled });
});

test('the agent of a sandbox outside sessions is reached until the sandbox has reached its age', () => {
  const sandbox = {
    vm_id: 'vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b',
    tenant_id: 'usr_1',
    template: 'standard',
    created_at: new Date('2026-01-02T03:04:05.678Z'),
    max_lifetime_seconds: 60,
  };
  expect(sandboxFacts(sandbox)).toEqual({
    session_id: '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
    tenant_id: 'usr_1',
    app_id: 'svc-sandbox',
    set_id: 'default',
    template: 'standard',
    expires_at: new Date('2026-01-02T03:05:05.678Z'),
  });
});
