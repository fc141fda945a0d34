import { LIMITS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

const BUDGET = 200_000;
/** Fits into the budget once. */
const LARGE = 'x'.repeat(120_000);

describe('a message that a client does not finish', () => {
  test('closes the connection after a while, although pings are answered', async () => {
    await using harness = await Harness.start({ messageMs: 100, keepaliveIntervalMs: 20 });
    const client = await harness.attach();
    client.socket.send('begun', { fin: false });
    expect(await client.ended).toEqual({ code: 1008, reason: 'message too slow' });
  });

  test('takes of the budget of its tenant until it is finished', async () => {
    await using harness = await Harness.start({ unfinishedBytesPerTenant: BUDGET });
    const holding = await harness.attach();
    holding.socket.send(LARGE, { fin: false });
    await expect
      .poll(async () => {
        const client = await harness.attach();
        client.socket.send(LARGE, { fin: false });
        client.socket.send('', { fin: true });
        client.socket.ping();
        return Promise.race([
          client.ended.then(({ reason }) => reason),
          new Promise((resolve) => client.socket.once('pong', resolve)),
        ]);
      })
      .toBe('too much unfinished');
    holding.socket.send('end');
    await expect.poll(() => received(harness)).toContain(`${LARGE}end`);
    const next = await harness.attach();
    next.socket.send(LARGE);
    await expect.poll(() => received(harness)).toContain(LARGE);
  });

  test('costs at most so many fragments', async () => {
    await using harness = await Harness.start();
    const client = await harness.attach();
    for (let sent = 0; sent < 2_000; sent += 1) client.socket.send('x', { fin: false });
    expect((await client.ended).code).toBe(1008);
  });
});

test('messages, and answers to pings, are within the budget however many there are', async () => {
  await using harness = await Harness.start({ unfinishedBytesPerTenant: BUDGET });
  const { socket } = await harness.attach();
  for (let sent = 0; sent < 1_000; sent += 1) {
    await new Promise((resolve) => socket.pong(Buffer.alloc(100), undefined, resolve));
  }
  for (let sent = 0; sent < 10; sent += 1) socket.send(LARGE);
  socket.send('x'.repeat(LIMITS.clientFrameBytes / 8));
  socket.send('last');
  await expect.poll(() => received(harness).at(-1)).toBe('last');
  expect(received(harness)).toHaveLength(12);
  expect(socket.readyState).toBe(socket.OPEN);
});

function received(harness: Harness): readonly string[] {
  return harness.worker.attached.flatMap(({ received: frames }) => frames);
}
