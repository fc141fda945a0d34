import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { LIMITS } from '@svc/contract';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

let harness: Harness;
/** Closes stalled connections soon. Not for tests that must survive a pause of the machine. */
let impatient: Harness;

beforeAll(async () => {
  harness = await Harness.start();
  impatient = await Harness.start({ stalledMs: 3_000, closeGraceMs: 60_000 });
});

afterAll(() => Promise.all([harness, impatient].map((one) => one?.[Symbol.asyncDispose]())));

async function attach(to = harness) {
  const client = await to.attach();
  await expect.poll(() => client.frames.length).toBe(1);
  return { client, worker: to.worker.last };
}

describe('frames', () => {
  test('are forwarded both ways unchanged and in order', async () => {
    const { client, worker } = await attach();
    const sent = Array.from({ length: 500 }, (_, i) => `{"seq":${i},"data":"grüß ${i}"}`);
    for (const text of sent) worker.socket.send(text);
    for (const text of sent) client.socket.send(text);
    await expect.poll(() => client.frames.slice(1)).toEqual(sent);
    await expect.poll(() => worker.received).toEqual(sent);
  });

  test('up to 1 MiB reach the worker; larger and binary ones are answered with an error', async () => {
    const { client, worker } = await attach();
    const largest = 'x'.repeat(LIMITS.clientFrameBytes);
    client.socket.send(largest);
    client.socket.send(`${largest}x`);
    client.socket.send(Buffer.from('binary'));
    client.socket.send('after');
    await expect.poll(() => worker.received.map(({ length }) => length)).toEqual([2 ** 20, 5]);
    const answers = () => client.frames.slice(1).map((text) => JSON.parse(text));
    await expect.poll(answers).toMatchObject([
      { type: 'error', code: 'frame_too_large', ts: expect.any(String) },
      { type: 'error', code: 'frame_binary' },
    ]);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
  });

  test('beyond the receive limit close only their connection', async () => {
    const { client } = await attach();
    const { client: other } = await attach();
    client.socket.send('x'.repeat(8 * 2 ** 20 + 1));
    expect((await client.ended).code).toBe(1009);
    expect(other.socket.readyState).toBe(other.socket.OPEN);
  });

  test('that are not UTF-8 close the connection with 1007', async () => {
    const { client } = await attach();
    client.socket.send(Buffer.from([0xc3, 0x28]), { binary: false });
    expect((await client.ended).code).toBe(1007);
  });

  test('in binary from the worker reach the client', async () => {
    const { client, worker } = await attach();
    const arrived = once(client.socket, 'message');
    worker.socket.send(Buffer.from([1, 2, 3]));
    expect(await arrived).toEqual([Buffer.from([1, 2, 3]), true]);
  });
});

describe('a close by the worker', () => {
  test.each([
    [1001, 'sandbox destroyed'],
    [1000, 'done'],
    [1013, 'slow consumer'],
    [1011, 'something'],
    [4100, 'own'],
  ])('with %i %s is forwarded after all its frames', async (code, reason) => {
    const { client, worker } = await attach();
    worker.socket.send('last');
    worker.socket.close(code, reason);
    expect(await client.ended).toEqual({ code, reason });
    expect(client.frames.at(-1)).toBe('last');
  });

  test('without a close frame, or without a code, becomes 1011', async () => {
    for (const end of ['terminate', 'close'] as const) {
      const { client, worker } = await attach();
      worker.socket[end]();
      expect(await client.ended).toEqual({ code: 1011, reason: 'upstream unavailable' });
    }
  });
});

describe('a close by the client', () => {
  test.each(['close', 'terminate'] as const)('by %s reaches the worker', async (how) => {
    const { client, worker } = await attach();
    client.socket[how]();
    await once(worker.socket, 'close');
  });

  test('during the connection to the worker reaches the worker', async () => {
    const session = harness.addSession();
    const before = harness.worker.attached.length;
    const attaching = harness.attach(session);
    await expect.poll(() => harness.worker.attached.length).toBe(before + 1);
    (await attaching).socket.terminate();
    await expect.poll(() => harness.worker.last.socket.readyState).toBe(3);
  });
});

describe('a client that does not read', () => {
  test('is closed with 1013, and holds the worker back until then', async () => {
    const { client, worker } = await attach(impatient);
    client.socket.pause();
    const piece = 'x'.repeat(64 * 1024);
    let isOpen = true;
    worker.socket.once('close', () => {
      isOpen = false;
    });
    let most = 0;
    // More than the kernel buffers of both sides hold.
    for (let sent = 0; isOpen && sent < 2_000; sent += 1) {
      if (worker.socket.bufferedAmount < 4 * 2 ** 20) worker.socket.send(piece);
      most = Math.max(most, worker.socket.bufferedAmount);
      await turn();
    }
    await expect.poll(() => isOpen).toBe(false);
    expect(most).toBeGreaterThan(1024 * 1024);
    client.socket.resume();
    expect(await client.ended).toEqual({ code: 1013, reason: 'slow consumer' });
  });

  test('its error frames is closed with 1013 too', async () => {
    const { client, worker } = await attach(impatient);
    client.socket.pause();
    let isOpen = true;
    worker.socket.once('close', () => {
      isOpen = false;
    });
    const refused = Buffer.from('x');
    for (let sent = 0; isOpen && sent < 500_000; sent += 1) {
      if (client.socket.bufferedAmount < 2 ** 20) client.socket.send(refused);
      if (sent % 500 === 0) await turn();
    }
    await expect.poll(() => isOpen).toBe(false);
    expect(worker.received).toEqual([]);
    client.socket.resume();
    expect(await client.ended).toEqual({ code: 1013, reason: 'slow consumer' });
  });

  test('is closed with 1013 at once when its account has too much unread', async () => {
    await using greedy = await Harness.start({
      unsentBytesPerTenant: 16 * 2 ** 20,
      stalledMs: 600_000,
      closeGraceMs: 60_000,
    });
    const { client: reader, worker: toReader } = await attach(greedy);
    // More than the kernel buffers of both sides hold.
    const piece = 'x'.repeat(14 * 2 ** 20);
    const silent: Awaited<ReturnType<typeof attach>>[] = [];
    for (let attached = 0; attached < 8; attached += 1) {
      const { client, worker } = await attach(greedy);
      client.socket.pause();
      worker.socket.send(piece);
      silent.push({ client, worker });
    }
    const dropped = () =>
      silent.filter(({ worker: { socket } }) => socket.readyState === socket.CLOSED);
    await expect.poll(() => dropped().length).toBeGreaterThan(0);
    toReader.socket.send('short');
    await expect.poll(() => reader.frames.at(-1)).toBe('short');
    const slow = dropped();
    expect(slow.length).toBeLessThan(silent.length);
    for (const { client } of silent) client.socket.resume();
    for (const { client } of slow) {
      expect(await client.ended).toEqual({ code: 1013, reason: 'slow consumer' });
    }
    toReader.socket.send(piece);
    await expect.poll(() => reader.frames.at(-1)).toBe(piece);
  });

  test('continuously but slowly gets everything', async () => {
    const { client, worker } = await attach();
    const pieces = Array.from({ length: 300 }, (_, i) => `${i}:${'x'.repeat(64 * 1024)}`);
    for (const piece of pieces) worker.socket.send(piece);
    for (let pauses = 0; client.frames.length < pieces.length + 1; pauses += 1) {
      if (pauses % 2 === 0) client.socket.pause();
      else client.socket.resume();
      await turn();
    }
    expect(client.frames.slice(1)).toEqual(pieces);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
  });
});

test('a worker that does not read holds the client back, then counts as gone', async () => {
  const { client, worker } = await attach(impatient);
  worker.socket.pause();
  const piece = 'x'.repeat(512 * 1024);
  let ended = false;
  client.socket.once('close', () => {
    ended = true;
  });
  for (let sent = 0; !ended && sent < 200; sent += 1) {
    if (client.socket.bufferedAmount < 4 * 2 ** 20) client.socket.send(piece);
    await turn();
  }
  expect(await client.ended).toEqual({ code: 1011, reason: 'upstream unavailable' });
});
