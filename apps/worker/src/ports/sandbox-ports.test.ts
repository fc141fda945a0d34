import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Duplex, duplexPair } from 'node:stream';
import type { Microvm } from '@svc/microvm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { Activity } from '../sandbox/activity.ts';
import { type PortSandbox, SandboxPorts } from './sandbox-ports.ts';

let server: Server;
let guests: Socket[];
let ended: AbortController;
let sandbox: PortSandbox;

beforeEach(async () => {
  guests = [];
  server = createServer((socket) => void guests.push(socket.on('error', () => socket.destroy())));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ended = new AbortController();
  const vm = {
    dialPort: async (port: number) => {
      const socket = connect({ host: '127.0.0.1', port });
      await once(socket, 'connect');
      return socket;
    },
  } as unknown as Microvm;
  sandbox = {
    id: 'vm_1',
    activity: new Activity(systemClock),
    signal: ended.signal,
    power: { runningVm: async () => vm, untilPause: new AbortController().signal },
  };
});
afterEach(() => {
  for (const socket of guests) socket.destroy();
  server.close();
});

const portOf = () => (server.address() as AddressInfo).port;
const never = new AbortController().signal;

it('keeps the sandbox active until the connection ends', async () => {
  const [near, far] = duplexPair();
  const connection = await new SandboxPorts().open(sandbox, portOf(), never);
  connection.join(far);
  expect(sandbox.activity.idleSince).toBeUndefined();
  near.resume().end();
  await vi.waitFor(() => expect(sandbox.activity.idleSince).toBeDefined());
});

it('ends when the sandbox ends before the connection is joined', async () => {
  const [, far] = duplexPair();
  const connection = await new SandboxPorts().open(sandbox, portOf(), never);
  ended.abort(new Error('ended'));
  connection.join(far);
  if (!far.closed) await once(far, 'close');
  await vi.waitFor(() => expect(guests.every((socket) => socket.destroyed)).toBe(true));
  expect(sandbox.activity.idleSince).toBeDefined();
});

it('ends a connection on which no byte moves', async () => {
  const [, far] = duplexPair();
  const connection = await new SandboxPorts(1, 100).open(sandbox, portOf(), never);
  connection.join(far);
  if (!far.closed) await once(far, 'close');
  await vi.waitFor(() => expect(sandbox.activity.idleSince).toBeDefined());
});

it('ends a connection whose caller never reads', async () => {
  const stuck = new Duplex({ read() {}, write() {}, highWaterMark: 16 });
  const connection = await new SandboxPorts(1, 200).open(sandbox, portOf(), never);
  connection.join(stuck);
  await vi.waitFor(() => expect(guests.length).toBe(1));
  guests[0]?.write(Buffer.alloc(64 * 1024 * 1024));
  await once(stuck, 'close');
  await vi.waitFor(() => expect(guests[0]?.destroyed).toBe(true));
});
