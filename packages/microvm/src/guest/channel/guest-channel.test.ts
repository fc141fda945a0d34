import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createIdentity } from '../identity.ts';
import { GuestChannel } from './guest-channel.ts';

const NEVER = new AbortController().signal;

let server: Server;
let channel: GuestChannel;
let connections: Socket[];
/** The operations received on each connection. */
let received: string[][];
/** Whether the guest does not answer yet. */
let isBusy: boolean;

beforeEach(async () => {
  connections = [];
  received = [];
  isBusy = false;
  server = createServer((socket) => {
    const operations: string[] = [];
    connections.push(socket);
    received.push(operations);
    socket.on('error', () => socket.destroy());
    createInterface(socket).on('line', (line) => {
      operations.push(JSON.parse(line).op);
      if (isBusy) return;
      socket.write('{"ok":true}\n');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  channel = new GuestChannel({ host: '127.0.0.1', port }, 'token');
});

afterEach(async () => {
  channel.close();
  server.close();
  await once(server, 'close');
});

test('sequential requests share a connection, concurrent requests do not', async () => {
  await channel.setName('one', NEVER);
  await channel.setClock(NEVER);
  expect(received).toEqual([['name', 'clock']]);
  await Promise.all([channel.ping(NEVER), channel.ping(NEVER)]);
  expect(received).toEqual([['name', 'clock', 'ping'], ['ping']]);
});

test('replaces a connection that the guest dropped', async () => {
  await channel.ping(NEVER);
  connections[0]?.destroy();
  await channel.setName('again', NEVER);
  expect(received).toEqual([['ping'], ['name']]);
});

test('close() closes the connection, and no connection is kept after it', async () => {
  await channel.ping(NEVER);
  channel.close();
  await channel.ping(NEVER);
  await expect.poll(() => connections.map(({ closed }) => closed)).toEqual([true, true]);
});

test('a restored guest has a minute to take its identity', async () => {
  isBusy = true;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const identifying = channel.identify(createIdentity('guest'), 'key', NEVER);
    const outcome = Promise.allSettled([identifying]);
    await vi.waitUntil(() => received.length > 0);
    vi.advanceTimersByTime(59_000);
    connections[0]?.write('{"ok":true}\n');
    expect(await outcome).toMatchObject([{ status: 'fulfilled' }]);
    const pinging = expect(channel.ping(NEVER)).rejects.toMatchObject({ code: 'timeout' });
    await vi.waitUntil(() => received.length > 1);
    vi.advanceTimersByTime(59_000);
    await pinging;
  } finally {
    vi.useRealTimers();
  }
});
