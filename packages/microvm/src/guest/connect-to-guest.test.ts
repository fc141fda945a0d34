import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
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
