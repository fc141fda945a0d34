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
/** What the guest says of the size of its disk, next first; the last one stays. */
let diskSizes: number[];

beforeEach(async () => {
  connections = [];
  received = [];
  isBusy = false;
  diskSizes = [1000];
  server = createServer((socket) => {
    const operations: string[] = [];
    connections.push(socket);
    received.push(operations);
    socket.on('error', () => socket.destroy());
    createInterface(socket).on('line', (line) => {
      operations.push(JSON.parse(line).op);
      if (isBusy) return;
      const size = diskSizes.length > 1 ? diskSizes.shift() : diskSizes[0];
      socket.write(`${JSON.stringify({ ok: true, size })}\n`);
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

/** Lets the guest answer its next requests as late as this, in milliseconds, by the clock of the channel. */
async function withDelays(delays: number[], work: () => Promise<void>): Promise<void> {
  isBusy = true;
  const before = received.flat().length;
  let now = 0;
  using _clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  const working = work();
  for (const [index, delay] of delays.entries()) {
    await vi.waitUntil(() => received.flat().length === before + index + 1);
    now += delay;
    for (const connection of connections) connection.write('{"ok":true}\n');
  }
  await working;
}

test('sets the clock of a guest again that was slow to take its identity', async () => {
  await withDelays([501, 500], () => channel.identify(createIdentity('guest'), 'key', NEVER));
  expect(received).toEqual([['identify'], ['clock']]);
});

test('does not set the clock again after a quick answer', async () => {
  await withDelays([500], () => channel.identify(createIdentity('guest'), 'key', NEVER));
  await withDelays([500], () => channel.setClock(NEVER));
  expect(received).toEqual([['identify'], ['clock']]);
});

test('sets a clock at most three times', async () => {
  await withDelays([9000, 9000, 9000], () => channel.setClock(NEVER));
  expect(received).toEqual([['clock', 'clock', 'clock']]);
});

test('extends the file system again until the guest has seen that its disk has grown', async () => {
  diskSizes = [1000, 1000, 2000];
  await channel.growRoot(2000, NEVER);
  expect(received).toEqual([['grow', 'grow', 'grow']]);
});

test('fails when the guest does not see within a minute that its disk has grown', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const growing = Promise.allSettled([channel.growRoot(2000, NEVER)]);
    // Advances the timers, too.
    await vi.waitUntil(() => received.flat().length > 1);
    vi.advanceTimersByTime(60_000);
    expect(await growing).toMatchObject([{ status: 'rejected', reason: { code: 'timeout' } }]);
  } finally {
    vi.useRealTimers();
  }
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
