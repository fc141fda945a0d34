import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { hostname } from 'node:os';
import type { SessionRoute } from '@svc/contract';
import { freePort } from '@svc/service-kit/testing';
import { expect, test } from 'vitest';
import { Harness } from '../test/harness.ts';

/** An address at which nothing listens. */
async function closedAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `https://127.0.0.1:${port}`;
}

test('keeps an idle client that answers pings, and closes one that does not', async () => {
  await using harness = await Harness.start({ keepaliveIntervalMs: 200, closeGraceMs: 200 });
  const session = harness.addSession();
  const alive = await harness.attach(session);
  const token = await harness.token(session.chat_session_id);
  const path = `/v1/sessions/${session.chat_session_id}/ws?token=${token}`;
  const deaf = await harness.open(path, { autoPong: false });
  expect(await deaf.ended).toEqual({ code: 1001, reason: 'keepalive timeout' });
  expect(alive.socket.readyState).toBe(alive.socket.OPEN);
  const pings = once(alive.socket, 'ping');
  await pings;
});

test('treats a silent worker as gone', async () => {
  await using harness = await Harness.start({ workerKeepaliveIntervalMs: 200 });
  const client = await harness.attach();
  await expect.poll(() => client.frames.length).toBe(1);
  harness.worker.last.socket.pause();
  expect(await client.ended).toEqual({ code: 1011, reason: 'upstream unavailable' });
});

test('reaches a session elsewhere whose worker is lost', async () => {
  await using harness = await Harness.start();
  const session = harness.addSession();
  if (!('worker' in session)) throw new Error('the session has no worker');
  const id = session.chat_session_id;
  const lost = { ...session.worker, vm_id: 'vm_lost', url: await closedAddress() };
  harness.controlPlane.sessions.set(id, { ...session, worker: lost });
  const refused = await harness.attach(session);
  expect(await refused.ended).toEqual({ code: 1011, reason: 'upstream unavailable' });
  harness.controlPlane.recovered.set(id, session);
  const client = await harness.attach(session);
  await expect.poll(() => client.frames).toEqual(['{"type":"ready"}']);
});

test('keeps 100 idle clients, and pings all of them', async () => {
  await using harness = await Harness.start({ keepaliveIntervalMs: 1_000 });
  const session = harness.addSession();
  const clients = await Promise.all(Array.from({ length: 100 }, () => harness.attach(session)));
  await Promise.all(
    clients.map(async ({ socket }) => {
      for (let pings = 0; pings < 4; pings += 1) await once(socket, 'ping');
    }),
  );
  expect(clients.every(({ socket }) => socket.readyState === socket.OPEN)).toBe(true);
  expect((await harness.get('/metrics')).text).toContain('svc_runtime_connections 100');
});

test('has its metrics at its internal address alone', async () => {
  const address = `127.0.0.1:${await freePort('127.0.0.1')}`;
  await using harness = await Harness.start({}, { SVC_RUNTIME_INTERNAL_LISTEN: address });
  const internal = { origin: `https://${address}` };
  expect((await harness.get('/metrics')).status).toBe(404);
  expect((await harness.get('/metrics', internal)).text).toContain('svc_runtime_');
  for (const path of ['/healthz', '/readyz']) {
    expect((await harness.get(path)).status).toBe(200);
    expect((await harness.get(path, internal)).status).toBe(200);
  }
});

test('reports to the control plane while it runs, and when it ends in order', async () => {
  await using harness = await Harness.start();
  const { runtimeHosts } = harness.controlPlane;
  const { port } = new URL(harness.host.url);
  await expect.poll(() => [...runtimeHosts.values()]).toEqual([`${hostname()}:${port}`]);
  await harness.host.close();
  expect([...runtimeHosts]).toEqual([]);
});

test('ends without a control plane, too', async () => {
  await using harness = await Harness.start();
  await expect.poll(() => harness.controlPlane.runtimeHosts.size).toBe(1);
  await harness.controlPlane.stop();
  await harness.host.close();
});

test('drains: is not ready, refuses new clients and keeps those that it has until it closes', async () => {
  await using harness = await Harness.start();
  const session = harness.addSession();
  const client = await harness.attach(session);
  expect((await harness.get('/readyz')).status).toBe(200);
  await harness.host.drain({ noticeMs: 0, workMs: 60_000 }, new AbortController().signal);
  expect((await harness.get('/readyz')).status).toBe(503);
  const headers = { authorization: `Bearer ${await harness.token(session.chat_session_id)}` };
  expect(
    await harness.refused(`/v1/sessions/${session.chat_session_id}/ws`, { headers }),
  ).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
    body: { code: 'shutting_down' },
  });
  expect(client.socket.readyState).toBe(client.socket.OPEN);
  await harness.host.close();
  expect(await client.ended).toEqual({ code: 1001, reason: 'server shutting down' });
});

test('stays ready while its control plane drains, which still looks sessions up', async () => {
  await using harness = await Harness.start();
  harness.controlPlane.drain.refuse();
  expect((await harness.get('/readyz')).status).toBe(200);
  const client = await harness.attach();
  await expect.poll(() => client.frames).toEqual(['{"type":"ready"}']);
  await harness.controlPlane.stop();
  expect(await harness.get('/readyz')).toMatchObject({
    status: 503,
    body: { code: 'control_plane_unreachable' },
  });
});

test('closes every client with 1001 on shutdown, terminates unresponsive ones, and accepts no more', async () => {
  await using harness = await Harness.start();
  const session = harness.addSession();
  const [polite, gone] = [await harness.attach(session), await harness.attach(session)];
  gone.socket.pause();
  const path = `/v1/sessions/${session.chat_session_id}/ws`;
  const headers = { authorization: `Bearer ${await harness.token(session.chat_session_id)}` };
  const closing = harness.host.close();
  const refused = harness.refused(path, { headers });
  expect(await polite.ended).toEqual({ code: 1001, reason: 'server shutting down' });
  expect(await refused).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
  await closing;
  await expect
    .poll(() => harness.worker.attached.every(({ socket }) => socket.readyState === 3))
    .toBe(true);
});

test('cuts connections that never finish a handshake, which do not delay the shutdown', async () => {
  await using harness = await Harness.start({ handshakeMs: 500 });
  const port = Number(new URL(harness.host.url.replace('wss', 'https')).port);
  for (const bytes of ['', 'GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01']) {
    const silent = connect({ host: '127.0.0.1', port });
    silent.on('error', () => undefined);
    silent.write(bytes);
    silent.resume();
    await once(silent, 'close');
  }
  const another = connect({ host: '127.0.0.1', port });
  another.on('error', () => undefined);
  await once(another, 'connect');
  await harness.host.close();
  another.destroy();
});

test('refuses too many connections from one address with 429', async () => {
  await using harness = await Harness.start({ connectionsPerAddress: 2 });
  const session = harness.addSession();
  const first = await harness.attach(session);
  await harness.attach(session);
  const headers = { authorization: `Bearer ${await harness.token(session.chat_session_id)}` };
  const path = `/v1/sessions/${session.chat_session_id}/ws`;
  expect(await harness.refused(path, { headers })).toMatchObject({
    status: 429,
    headers: { 'retry-after': '5' },
    body: { code: 'rate_limited' },
  });
  first.socket.close();
  await first.ended;
  await expect
    .poll(() =>
      harness.open(path, { headers }).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
});

test('leaves connections to an account while others have as many as they can', async () => {
  await using harness = await Harness.start({ connections: 64, connectionsPerTenant: 64 });
  const attackers = ['t1', 't2', 't3', 't4'].map((tenant_id) => harness.addSession({ tenant_id }));
  const open = async (session: SessionRoute) => {
    const id = session.chat_session_id;
    const token = await harness.token(id, { user_id: session.tenant_id });
    const headers = { authorization: `Bearer ${token}` };
    return harness.open(`/v1/sessions/${id}/ws`, { headers });
  };
  const full = { status: 429, body: { code: 'too_many_connections' } };
  for (const attacker of attackers) {
    for (let opened = 0; opened < 64; opened += 1) {
      const refusal = await open(attacker).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (refusal === undefined) continue;
      expect(refusal).toMatchObject(full);
      break;
    }
  }
  await open(harness.addSession({ tenant_id: 'neighbour' }));
});

test('refuses too many connections of one account with 429, whatever their sessions', async () => {
  await using harness = await Harness.start({ connectionsPerTenant: 2 });
  const sessions = [harness.addSession(), harness.addSession()];
  const open = async (index: number) => {
    const session = sessions[index % 2];
    if (session === undefined) throw new Error('no session');
    const headers = { authorization: `Bearer ${await harness.token(session.chat_session_id)}` };
    return { path: `/v1/sessions/${session.chat_session_id}/ws`, headers };
  };
  const tries = await Promise.all(
    Array.from({ length: 6 }, async (_, index) => {
      const { path, headers } = await open(index);
      return harness.open(path, { headers }).catch(() => undefined);
    }),
  );
  const clients = tries.filter((client) => client !== undefined);
  expect(clients).toHaveLength(2);
  const { path, headers } = await open(0);
  expect(await harness.refused(path, { headers })).toMatchObject({
    status: 429,
    headers: { 'retry-after': '5' },
    body: { code: 'too_many_connections' },
  });
  clients[0]?.socket.close();
  await clients[0]?.ended;
  await expect
    .poll(() =>
      harness.open(path, { headers }).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
});
