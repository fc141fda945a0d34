import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { LIMITS, PORT_PROTOCOL } from '@svc/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;
let id: string;
let port: number;
/** The server's ends of the connections. */
let accepted: Socket[];
const server = createServer({ allowHalfOpen: true });

beforeAll(async () => {
  harness = await Harness.start();
  server.on('connection', (socket) => {
    accepted.push(socket.on('error', () => socket.destroy()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(async () => {
  await harness?.[Symbol.asyncDispose]();
  server.close();
});
beforeEach(async () => {
  accepted = [];
  id = await harness.create();
});
afterEach(async () => {
  for (const socket of accepted) socket.destroy();
  await harness.json('DELETE', `/sandboxes/${id}`);
});

/** Asks for a port; returns the connection and what the worker has answered so far. */
async function ask(
  target: number | string = port,
  headers: Record<string, string> = {},
): Promise<{ socket: TLSSocket; head: string }> {
  const url = new URL(harness.worker.url);
  const socket = tlsConnect({
    host: url.hostname,
    port: Number(url.port),
    rejectUnauthorized: false,
  });
  socket.on('error', () => socket.destroy());
  const lines = Object.entries({
    host: 'worker',
    connection: 'Upgrade',
    upgrade: PORT_PROTOCOL,
    authorization: `Bearer ${await harness.token()}`,
    ...headers,
  }).map(([name, value]) => `${name}: ${value}`);
  socket.write(
    `GET /internal/v1/sandboxes/${id}/ports/${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`,
  );
  const [chunk] = await once(socket, 'data');
  return { socket, head: String(chunk) };
}

const statusOf = async (...call: Parameters<typeof ask>) => {
  const { socket, head } = await ask(...call);
  socket.destroy();
  return Number(/^HTTP\/1.1 (\d+)/.exec(head)?.[1]);
};

describe('a port', () => {
  it('becomes a connection both ways', async () => {
    const { socket, head } = await ask();
    expect(head).toMatch(/^HTTP\/1.1 101 /);
    socket.write('hello');
    const [guest] = accepted;
    expect(String((await once(guest as Socket, 'data'))[0])).toBe('hello');
    guest?.write('world');
    expect(String((await once(socket, 'data'))[0])).toBe('world');
    const ended = once(guest as Socket, 'end');
    socket.destroy();
    await ended;
  });

  it('sends everything before the end of the server', async () => {
    const { socket } = await ask();
    const bytes = Buffer.alloc(4 * 1024 * 1024, 1);
    accepted[0]?.end(bytes);
    let received = 0;
    for await (const chunk of socket) received += (chunk as Buffer).length;
    expect(received).toBe(bytes.length);
  });

  it.each(['pause', 'delete'])('ends with the %s of its sandbox', async (how) => {
    const { socket } = await ask();
    const closed = [once(socket, 'close'), once(accepted[0] as Socket, 'close')];
    if (how === 'pause') await harness.json('POST', `/sandboxes/${id}/pause`);
    else await harness.json('DELETE', `/sandboxes/${id}`);
    accepted[0]?.resume().end();
    await Promise.all(closed);
    expect(await statusOf()).toBe(409);
  });

  it('is refused without a server, for ports of the guest itself, and to others', async () => {
    expect(await statusOf(1)).toBe(502);
    for (const reserved of [22, 7000, 7100, 0, 65_536, 'x']) {
      expect(await statusOf(reserved)).toBe(400);
    }
    expect(await statusOf(port, { authorization: 'Bearer x' })).toBe(401);
    expect(await statusOf(port, { upgrade: 'websocket' })).toBe(404);
    expect(accepted).toEqual([]);
  });

  it('is refused beyond the connections of a sandbox until one ends', async () => {
    const open = await Promise.all(
      Array.from({ length: LIMITS.portConnectionsPerSandbox }, () => ask()),
    );
    expect(await statusOf()).toBe(429);
    for (const { socket } of open) socket.destroy();
    await vi.waitFor(async () => expect(await statusOf()).toBe(101), 10_000);
  });
});
