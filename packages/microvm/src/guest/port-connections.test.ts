import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type GuestDaemon, startGuestDaemon } from '../../test/guest-daemon.ts';
import { GuestChannel } from './channel/guest-channel.ts';
import { PortConnections } from './port-connections.ts';

/** Connections of the channel that the daemon serves at a time, and connections to ports. */
const CHANNEL_CONNECTIONS = 32;
const FORWARDS = 64;

let daemon: GuestDaemon;
let ports: PortConnections;
let server: Server;
let guests: Socket[];

beforeAll(async () => {
  daemon = await startGuestDaemon();
});
afterAll(() => daemon.stop());
beforeEach(async () => {
  guests = [];
  server = createServer({ allowHalfOpen: true }, (socket) => {
    guests.push(socket.on('error', () => socket.destroy()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ports = new PortConnections(daemon.address, daemon.token);
});
afterEach(() => {
  ports.close();
  for (const socket of guests) socket.destroy();
  server.close();
});

const signal = () => AbortSignal.timeout(20_000);
const portOf = () => (server.address() as AddressInfo).port;
async function dial(): Promise<[Socket, Socket]> {
  const known = guests.length;
  const socket = await ports.dial(portOf(), signal());
  await vi.waitFor(() => expect(guests.length).toBeGreaterThan(known));
  return [socket, guests.at(-1) as Socket];
}
const threads = async () =>
  Number(/^Threads:\s+(\d+)/m.exec(await readFile(`/proc/${daemon.pid}/status`, 'utf8'))?.[1]);

test('a connection carries bytes both ways, and everything before the end of the server', async () => {
  const [socket, guest] = await dial();
  const bytes = Buffer.alloc(3_000_000, 'x');
  socket.write(bytes);
  let received = 0;
  for await (const chunk of guest) {
    received += (chunk as Buffer).length;
    if (received === bytes.length) break;
  }
  const [other, sender] = await dial();
  sender.end(bytes);
  expect((await buffer(other)).equals(bytes)).toBe(true);
});

test('either end ends the other, and leaves nothing in the daemon', async () => {
  const before = await threads();
  const [first, firstGuest] = await dial();
  first.end();
  await once(firstGuest.resume(), 'end');
  firstGuest.end();
  const [second, secondGuest] = await dial();
  secondGuest.destroy();
  await once(second.resume(), 'close');
  const [third, thirdGuest] = await dial();
  third.resetAndDestroy();
  await once(thirdGuest.resume(), 'end');
  thirdGuest.destroy();
  await vi.waitFor(async () => expect(await threads()).toBeLessThanOrEqual(before), 10_000);
});

test('a port without a server is refused', async () => {
  const port = portOf();
  server.close();
  await once(server, 'close');
  await expect(ports.dial(port, signal())).rejects.toMatchObject({ code: 'port_unreachable' });
  await expect(ports.dial(65_536, signal())).rejects.toMatchObject({ code: 'port_unreachable' });
});

test('a wrong token opens nothing', async () => {
  const forged = new PortConnections(daemon.address, 'wrong');
  await expect(forged.dial(portOf(), signal())).rejects.toMatchObject({
    code: 'guest_unreachable',
  });
  expect(guests).toEqual([]);
});

test('open connections delay no request, and their number is bounded', async () => {
  const open = await Promise.all(
    Array.from({ length: FORWARDS }, () => ports.dial(portOf(), signal())),
  );
  expect(FORWARDS).toBeGreaterThan(CHANNEL_CONNECTIONS);
  await expect(ports.dial(portOf(), signal())).rejects.toMatchObject({ code: 'port_unreachable' });
  const channel = new GuestChannel(daemon.address, daemon.token);
  await channel.ping(signal());
  channel.close();
  for (const socket of open) socket.destroy();
  for (const guest of guests) guest.destroy();
  await vi.waitFor(async () => void (await ports.dial(portOf(), signal())), 10_000);
});

test('closing ends every connection and refuses new ones', async () => {
  const [socket] = await dial();
  ports.close();
  expect(socket.destroyed).toBe(true);
  await expect(ports.dial(portOf(), signal())).rejects.toMatchObject({ code: 'guest_unreachable' });
});
