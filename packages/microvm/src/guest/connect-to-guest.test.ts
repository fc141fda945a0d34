import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { connectToGuest } from './connect-to-guest.ts';

test('a connection that the guest resets before anybody listens for errors is closed', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => socket.resetAndDestroy());
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = await connectToGuest({ host: '127.0.0.1', port }, new AbortController().signal);
  socket.write('x');
  // Not events.once, which listens for errors.
  await new Promise((resolve) => socket.resume().once('close', resolve));
  expect(socket.errored).not.toBeNull();
});

test('little is read ahead of a guest that sends a byte at a time', async () => {
  const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = await connectToGuest({ host: '127.0.0.1', port }, new AbortController().signal);
  const [guest] = await accepted;
  onTestFinished(() => {
    for (const end of [socket, guest]) end.destroy();
  });
  for (let sent = 0; sent < 3000; sent += 1) {
    guest.write('x');
    await nextTurn();
  }
  expect(socket.readableLength).toBeLessThan(2000);
});
