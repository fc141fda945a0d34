import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { abandonWhenStalled } from './open-request.ts';

const STALL_MS = 20;

/** The host's end of a connection on which nothing is sent. */
async function silentConnection(): Promise<Socket> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [other] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    for (const end of [socket, other]) end.destroy();
    server.close();
  });
  return socket;
}

test('a connection on which the guest makes no progress is abandoned', async () => {
  const socket = await silentConnection();
  const failed = once(socket, 'error');
  abandonWhenStalled(socket, () => false, STALL_MS);
  expect(await failed).toEqual([expect.objectContaining({ code: 'timeout' })]);
});

test('a connection is kept for as long as this side holds the guest up', async () => {
  const socket = await silentConnection();
  const failed = once(socket, 'error');
  let asked = 0;
  let isHeldUp = true;
  abandonWhenStalled(
    socket,
    () => {
      asked += 1;
      return isHeldUp;
    },
    STALL_MS,
  );
  await expect.poll(() => asked).toBeGreaterThan(2);
  expect(socket.destroyed).toBe(false);
  isHeldUp = false;
  await failed;
});

test('a connection that is no longer watched is kept', async () => {
  const socket = await silentConnection();
  const settled = abandonWhenStalled(socket, () => false, STALL_MS);
  settled();
  expect(socket.listenerCount('timeout')).toBe(0);
  expect(socket.timeout).toBe(0);
});
