import { randomUUID } from 'node:crypto';
import { connect } from 'node:tls';
import type { SessionRoute } from '@svc/contract';
import {
  createSelfSigned,
  generateKeyPair,
  mintHopToken,
  Secret,
  SessionTokens,
  sessionTokenKey,
} from '@svc/service-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start({ handshakesPerAddress: 8 });
});

afterAll(() => harness[Symbol.asyncDispose]());

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const identityOf = (id: string) => ({
  user_id: 'usr_owner',
  app_id: 'a',
  set_id: 'b',
  chat_session_id: id,
  cua_enabled: false,
});
const pathOf = (id: string) => `/v1/sessions/${id}/ws`;

describe('an upgrade is accepted', () => {
  test('with the token in the header, and the worker gets a separate token', async () => {
    const session = harness.addSession({ app_id: 'shop', cua_enabled: true });
    const id = session.chat_session_id;
    const token = await harness.token(id);
    const client = await harness.open(`${pathOf(id)}?after_seq=7`, bearer(token), ['svc.v2']);
    expect(client.socket.protocol).toBe('svc.v2');
    await expect.poll(() => client.frames).toEqual(['{"type":"ready"}']);
    const { url, claims, authorization } = harness.worker.last;
    expect(url.pathname).toBe(`/internal/v1/sessions/${id}/ws`);
    expect(url.search).toBe('?after_seq=7');
    expect(authorization).not.toContain(token);
    expect(claims).toMatchObject({
      user_id: session.tenant_id,
      chat_session_id: id,
      app_id: 'shop',
      cua_enabled: true,
    });
    expect(claims.exp).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000) + 60);
  });

  test('with the token in the query, which is not logged', async () => {
    const { chat_session_id: id } = harness.addSession();
    const token = await harness.token(id);
    const client = await harness.open(`${pathOf(id)}?token=${token}`);
    await expect.poll(() => client.frames).toHaveLength(1);
    client.socket.close(1000);
    await client.ended;
    await expect.poll(() => harness.logLines.join('')).toContain('detached');
    await harness.refused(`${pathOf(id)}?token=${token}&after_seq=x`);
    expect(harness.logLines.join('')).not.toContain(token);
    expect(harness.logLines.join('')).not.toContain('token=');
    expect(harness.worker.last.url.search).toBe('');
  });
});

describe('an upgrade is refused with 401', () => {
  test.each<[string, (id: string) => Promise<string | undefined>]>([
    ['no token', async () => undefined],
    ['rubbish', async () => 'rubbish'],
    ['an expired token', (id) => harness.token(id, {}, new Date(Date.now() - 60_000))],
    [
      'a token of another cluster',
      (id) => {
        const secret = new Secret('another-secret-of-at-least-32-characters');
        return new SessionTokens([sessionTokenKey(secret)]).mint(
          identityOf(id),
          new Date(Date.now() + 60_000),
        );
      },
    ],
    ['a hop token', async (id) => mintHopToken(await generateKeyPair(), identityOf(id), 'wrk_1')],
  ])('for %s', async (_what, tokenFor) => {
    const { chat_session_id: id } = harness.addSession();
    const token = await tokenFor(id);
    const refusal = await harness.refused(pathOf(id), token === undefined ? {} : bearer(token));
    expect(refusal).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(refusal.headers['content-type']).toBe('application/problem+json');
    expect(refusal.headers['www-authenticate']).toBe('Bearer');
    expect(refusal.body.request_id).toBe(refusal.headers['x-request-id']);
  });

  test('for an unknown session, indistinguishable from an invalid token', async () => {
    const id = randomUUID();
    const unknown = await harness.refused(pathOf(id), bearer(await harness.token(id)));
    const invalid = await harness.refused(pathOf(id), bearer('x.y.z'));
    expect(unknown.status).toBe(401);
    expect({ ...unknown.body, request_id: '' }).toEqual({ ...invalid.body, request_id: '' });
  });

  test('for an unknown session with the token of another session', async () => {
    const { chat_session_id: id } = harness.addSession();
    const refusal = await harness.refused(pathOf(randomUUID()), bearer(await harness.token(id)));
    expect(refusal.status).toBe(401);
  });

  test('for two tokens in the query, and for an invalid header with a valid query', async () => {
    const { chat_session_id: id } = harness.addSession();
    const token = await harness.token(id);
    expect(await harness.refused(`${pathOf(id)}?token=${token}&token=${token}`)).toMatchObject({
      status: 401,
    });
    const both = await harness.refused(`${pathOf(id)}?token=${token}`, bearer('x'));
    expect(both).toMatchObject({ status: 401 });
  });
});

describe('an upgrade is refused', () => {
  test('with 403 for the token of another session, or of another account', async () => {
    const mine = harness.addSession().chat_session_id;
    const other = harness.addSession().chat_session_id;
    expect(await harness.refused(pathOf(other), bearer(await harness.token(mine)))).toMatchObject({
      status: 403,
      body: { code: 'session_token_mismatch' },
    });
    const foreign = harness.addSession({ tenant_id: 'usr_other' }).chat_session_id;
    expect(
      await harness.refused(pathOf(foreign), bearer(await harness.token(foreign))),
    ).toMatchObject({ status: 403, body: { code: 'session_of_another_tenant' } });
  });

  test.each(['-1', 'x', '', '1.5', '99999999999999999', '1&after_seq=2'])(
    'with 400 for after_seq=%s, once the token is verified',
    async (value) => {
      const { chat_session_id: id } = harness.addSession();
      const path = `${pathOf(id)}?after_seq=${value}`;
      expect(await harness.refused(path)).toMatchObject({ status: 401 });
      expect(await harness.refused(path, bearer(await harness.token(id)))).toMatchObject({
        status: 400,
        body: { code: 'validation_failed', errors: [{ path: 'after_seq' }] },
      });
    },
  );

  test('with 503 while the control plane fails, and readiness reports it', async () => {
    const { chat_session_id: id } = harness.addSession();
    const token = await harness.token(id);
    harness.controlPlane.isBroken = true;
    try {
      expect(await harness.refused(pathOf(id), bearer(token))).toMatchObject({
        status: 503,
        body: { code: 'control_plane_unreachable' },
      });
      expect(await harness.get('/readyz')).toMatchObject({ status: 503 });
      expect(await harness.get('/healthz')).toMatchObject({ status: 200 });
    } finally {
      harness.controlPlane.isBroken = false;
    }
    expect(await harness.get('/readyz')).toMatchObject({ status: 200, body: { status: 'ready' } });
  });

  test.each([
    '/v1/sandboxes/vm_1/ws',
    '/v1/sessions',
    '/v1/sessions/x/wss',
    '/',
    '/internal/v1/sessions/x/ws',
  ])('with 404 at %s', async (path) => {
    expect(await harness.refused(path)).toMatchObject({
      status: 404,
      body: { code: 'route_not_found' },
    });
    expect(await harness.get(path)).toMatchObject({ status: 404 });
  });

  test('with 404 for a request that is not a WebSocket handshake', async () => {
    const { chat_session_id: id } = harness.addSession();
    expect(await harness.get(`${pathOf(id)}?token=${await harness.token(id)}`)).toMatchObject({
      status: 404,
    });
    expect(
      await raw(
        `GET ${pathOf(id)} HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: h2c\r\n\r\n`,
      ),
    ).toMatch(/^HTTP\/1.1 404 .*route_not_found/s);
  });

  test('with 400 for a malformed handshake', async () => {
    const head = `GET ${pathOf('x')} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n`;
    expect(await raw(`${head}sec-websocket-version: 13\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
    const key = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
    expect(await raw(`${head}${key}sec-websocket-version: 8\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
  });

  test('with 431 for overlong headers', async () => {
    const refusal = raw(
      `GET ${pathOf('x')} HTTP/1.1\r\nhost: x\r\na: ${'a'.repeat(65_536)}\r\n\r\n`,
    );
    expect(await refusal).toMatch(/^HTTP\/1.1 431 /);
  });
});

describe('a session without a reachable worker', () => {
  test('because it has ended is accepted and closed with 1011', async () => {
    const client = await harness.attach(harness.addSession({ isOver: true }));
    expect(await client.ended).toEqual({ code: 1011, reason: 'upstream unavailable' });
  });

  test('because the worker is gone, refuses or has another certificate is closed with 1011', async () => {
    const { worker }: SessionRoute = harness.addSession();
    if (worker === undefined) throw new Error('no worker');
    const gone = { ...worker, url: 'https://127.0.0.1:9' };
    const impostor = await createSelfSigned({ commonName: 'w', names: ['127.0.0.1'], days: 1 });
    const other = { ...worker, certificate: impostor.cert };
    for (const at of [gone, other]) {
      const client = await harness.attach(harness.addSession({ worker: at }));
      expect(await client.ended).toEqual({ code: 1011, reason: 'upstream unavailable' });
    }
    harness.worker.refusal = 404;
    try {
      const client = await harness.attach();
      expect(await client.ended).toEqual({ code: 1011, reason: 'upstream unavailable' });
    } finally {
      harness.worker.refusal = undefined;
    }
  });

  test('is logged once a minute for each account, however often its client tries', async () => {
    const { worker }: SessionRoute = harness.addSession();
    if (worker === undefined) throw new Error('no worker');
    const gone = { ...worker, url: 'https://127.0.0.1:9' };
    const attach = async (tenant: string) => {
      const { chat_session_id: id } = harness.addSession({ worker: gone, tenant_id: tenant });
      const token = await harness.token(id, { user_id: tenant });
      await (await harness.open(pathOf(id), bearer(token))).ended;
    };
    const before = harness.logLines.length;
    for (let round = 0; round < 20; round += 1) await attach('usr_insistent');
    await attach('usr_other');
    const lines = harness.logLines.slice(before).map((line) => JSON.parse(line));
    // One a minute of each, however long these take.
    const warnings = lines.filter(({ level }) => level >= 40);
    expect(warnings.length).toBeLessThan(10);
    expect(warnings.filter(({ omitted }) => omitted === 0)).toHaveLength(2);
    expect(warnings[0].msg).toBe('cannot reach the worker of a session');
  });

  test('is logged once a minute when the control plane refuses this runtime host', async () => {
    const before = harness.logLines.length;
    harness.controlPlane.refusesIdentity = true;
    try {
      for (let round = 0; round < 20; round += 1) {
        await harness.refused(`${pathOf(randomUUID())}?token=any`);
      }
    } finally {
      harness.controlPlane.refusesIdentity = false;
    }
    const lines = harness.logLines.slice(before).map((line) => JSON.parse(line));
    const errors = lines.filter(({ level }) => level >= 40);
    expect(errors.map(({ msg }) => msg).join()).toContain('refuses the identity');
    expect(errors.length).toBeLessThan(10);
  });
});

test('metrics count connections', async () => {
  await harness.attach(harness.addSession({ isOver: true }));
  const { text } = await harness.get('/metrics');
  expect(text).toMatch(/svc_runtime_connections_total\{upstream="unavailable"\} [1-9]/);
  expect(text).toMatch(/svc_runtime_connections \d/);
});

/** The response to these bytes. */
async function raw(bytes: string): Promise<string> {
  const port = Number(new URL(harness.host.url.replace('wss', 'https')).port);
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  socket.write(bytes);
  let answer = '';
  const ended = Promise.withResolvers<void>();
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.on('error', () => ended.resolve());
  socket.on('close', () => ended.resolve());
  await ended.promise;
  return answer;
}
