import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import type { Budget } from '@svc/service-kit/concurrency';
import { createUnsentBudgets } from '@svc/service-kit/websocket';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { FrameDelivery } from './frame-delivery.ts';

const MIB = 1024 * 1024;
/** More than the kernel buffers of both sides hold. */
const LONG = { seq: 1, text: 'x'.repeat(16 * MIB) };

let server: WebSocketServer;

beforeEach(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
});

afterEach(async () => {
  for (const ws of server.clients) ws.terminate();
  server.close();
  await once(server, 'close');
});

/** A client that reads nothing, and the delivery of a session to it. */
async function attach(unsent: Budget, stored = [LONG], afterSeq?: number) {
  const { port } = server.address() as AddressInfo;
  const client = new WebSocket(`ws://127.0.0.1:${port}`);
  const [[ws, request]] = await Promise.all([once(server, 'connection'), once(client, 'open')]);
  client.pause();
  const delivery = new FrameDelivery({
    ws,
    socket: request.socket as Socket,
    journal: { lastSeq: stored.length, firstSeq: 1, read: async () => stored },
    slowConsumerMs: 600_000,
    unsent,
    ...(afterSeq === undefined ? {} : { afterSeq }),
  });
  return { client, delivery };
}

async function endOf(client: WebSocket) {
  client.resume();
  const [code, reason] = await once(client, 'close');
  return { code, reason: String(reason) };
}

test('clients of an account may leave as much unread as its budget has', async () => {
  const unsent = createUnsentBudgets(20 * MIB).of('account');
  const attached: Awaited<ReturnType<typeof attach>>[] = [];
  const refused = () => attached.find(({ delivery }) => !delivery.isOpen);
  // Each takes at least a few MiB.
  while (refused() === undefined && attached.length < 10) {
    const next = await attach(unsent, []);
    next.delivery.show([LONG]);
    attached.push(next);
  }
  expect(attached.length).toBeGreaterThan(1);
  expect(attached[0]?.delivery.isOpen).toBe(true);
  for (const { client } of attached) client.resume();
  const { client: slow } = refused() ?? {};
  expect(slow && (await endOf(slow))).toEqual({ code: 1013, reason: 'slow consumer' });
  await expect.poll(() => unsent.left).toBe(20 * MIB);
});

test('so may a client during its replay', async () => {
  const { client, delivery } = await attach(createUnsentBudgets(MIB).of('account'), [LONG], 0);
  await delivery.replay();
  expect(delivery.isOpen).toBe(false);
  expect(await endOf(client)).toEqual({ code: 1013, reason: 'slow consumer' });
});

test('a client that has gone takes nothing of the budget', async () => {
  const unsent = createUnsentBudgets(20 * MIB).of('account');
  const { client, delivery } = await attach(unsent, []);
  delivery.show([LONG]);
  expect(unsent.left).toBeLessThan(20 * MIB);
  client.terminate();
  await expect.poll(() => unsent.left).toBe(20 * MIB);
});
