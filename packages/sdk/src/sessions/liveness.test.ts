import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { type Meeting, scriptedSessions } from '../../test/scripted-sessions.ts';
import { watchLiveness } from './liveness.ts';

const INTERVAL_MS = 50;

/** A connection to a scripted server by a relay that can go silent without closing anything, as a lost machine does. */
async function relayed(meeting: Meeting) {
  const server = await scriptedSessions(meeting);
  const { port: target } = new URL(server.access.connect_url);
  const pairs: (readonly [Socket, Socket])[] = [];
  const relay = createServer((near) => {
    const far = connect(Number(target), '127.0.0.1');
    for (const socket of [near, far]) socket.on('error', () => undefined);
    pairs.push([near, far]);
    near.pipe(far);
    far.pipe(near);
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const { port } = relay.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/sessions/s/ws`);
  watchLiveness(socket, INTERVAL_MS);
  await once(socket, 'open');
  return {
    socket,
    server,
    goSilent: () => {
      for (const [near, far] of pairs) {
        far.unpipe(near);
        near.unpipe(far);
      }
    },
    [Symbol.asyncDispose]: async () => {
      socket.terminate();
      for (const pair of pairs) for (const end of pair) end.destroy();
      relay.close();
      await server.close();
    },
  };
}

test('a connection whose other end is gone without a word is terminated', async () => {
  await using lost = await relayed(() => undefined);
  const closed = once(lost.socket, 'close');
  lost.goSilent();
  expect((await closed)[0]).toBe(1006);
});

test('a connection on which nothing is said is kept by answered pings', async () => {
  let pings = 0;
  await using idle = await relayed((socket) =>
    socket.on('ping', () => {
      pings += 1;
    }),
  );
  // Longer than the silence that would end it.
  await vi.waitFor(() => expect(pings).toBeGreaterThan(10), 30_000);
  expect(idle.socket.readyState).toBe(idle.socket.OPEN);
});
