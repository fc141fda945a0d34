import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
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
    const lines = createInterface(socket);
    // It repeats the errors of the socket: a client that leaves early may reset the connection.
    lines.on('error', () => undefined);
    lines.on('line', (line) => {
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

/** A download from a guest that sends what `send` tells it to, after the answer. */
async function forgedDownload(answer: string, send: (socket: Socket) => Promise<void>) {
  isBusy = true;
  const downloading = channel.download('/file', NEVER);
  await expect.poll(() => received.flat()).toContain('get');
  const [socket] = connections;
  if (socket === undefined) throw new Error('there is no connection');
  socket.setNoDelay(true);
  socket.write(`${answer}\n`);
  const { stream } = await downloading;
  void send(socket);
  return { stream, socket };
}

/** Reads a stream to its end. Returns the content, and of how many buffers it was. */
async function readBuffers(stream: Readable) {
  const buffers: Buffer[] = [];
  stream.on('data', (data: Buffer) => buffers.push(data));
  await once(stream, 'end');
  return { content: Buffer.concat(buffers), count: buffers.length };
}

test('content in chunks of a byte waits to be read in few buffers', async () => {
  const bytes = 200_000;
  const chunks = Buffer.alloc(5 * bytes, Buffer.from([0, 0, 0, 1, 0x78]));
  const { stream, socket } = await forgedDownload('{"ok":true}', async (guest) => {
    guest.write(chunks);
  });
  await expect.poll(() => stream.readableLength).toBeGreaterThan(bytes - 20_000);
  socket.write(Buffer.alloc(4));
  const { content, count } = await readBuffers(stream);
  expect(content.equals(Buffer.alloc(bytes, 'x'))).toBe(true);
  expect(count).toBeLessThan(1000);
});

test('content in segments of a byte is joined', async () => {
  const bytes = 3000;
  try {
    const { stream } = await forgedDownload(`{"ok":true,"size":${bytes}}`, async (guest) => {
      // Without the passing of time, nothing but the end of the content ends the wait for more of it.
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      for (let sent = 0; sent < bytes; sent += 1) {
        guest.write('x');
        await nextTurn();
      }
    });
    const { content, count } = await readBuffers(stream);
    expect(content.equals(Buffer.alloc(bytes, 'x'))).toBe(true);
    expect(count).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test('content that more does not follow for a while is passed on', async () => {
  const { stream } = await forgedDownload('{"ok":true}', async (guest) => {
    guest.write(Buffer.from([0, 0, 0, 9, 0x78]));
  });
  expect(await once(stream, 'data')).toEqual([Buffer.from('x')]);
  stream.destroy();
});

test('a chunk may be cut anywhere', async () => {
  const wire = Buffer.from([0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 2, 4, 5, 0, 0, 0, 0]);
  for (let cut = 1; cut < wire.length; cut += 1) {
    connections = [];
    received = [];
    const { stream } = await forgedDownload('{"ok":true}', async (guest) => {
      guest.write(wire.subarray(0, cut));
      await nextTurn();
      guest.write(wire.subarray(cut));
    });
    expect((await readBuffers(stream)).content).toEqual(Buffer.from([1, 2, 3, 4, 5]));
  }
});
