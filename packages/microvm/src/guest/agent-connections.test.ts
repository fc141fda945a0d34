import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { freePort } from '@svc/service-kit/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentConnections } from './agent-connections.ts';

const NEVER = new AbortController().signal;

let server: Server;
let address: { host: string; port: number };

beforeEach(async () => {
  server = createServer((socket) => socket.on('error', () => socket.destroy()).write('hello'));
  address = { host: '127.0.0.1', port: await freePort('127.0.0.1') };
  server.listen(address.port, address.host);
  await once(server, 'listening');
});
afterEach(() => {
  server.close();
});

test('dial() returns a connection that the caller owns', async () => {
  const socket = await new AgentConnections(address).dial(NEVER);
  expect(String((await once(socket, 'data'))[0])).toBe('hello');
  socket.destroy();
});

test('close() destroys open connections and refuses new ones', async () => {
  const connections = new AgentConnections(address);
  const sockets = await Promise.all([connections.dial(NEVER), connections.dial(NEVER)]);
  connections.close();
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  await expect(connections.dial(NEVER)).rejects.toMatchObject({ code: 'guest_unreachable' });
});

test('dial() waits for a runtime that starts in the meantime', async () => {
  const { port } = address;
  server.close();
  await once(server, 'close');
  const dialing = new AgentConnections(address).dial(NEVER);
  server.listen(port, '127.0.0.1');
  (await dialing).destroy();
});

test('dial() fails with guest_unreachable after its deadline, and at once when the caller aborts', async () => {
  server.close();
  await once(server, 'close');
  const connections = new AgentConnections(address, 100);
  await expect(connections.dial(NEVER)).rejects.toMatchObject({ code: 'guest_unreachable' });
  const left = AbortSignal.abort(new Error('the caller left'));
  await expect(connections.dial(left)).rejects.toThrow('the caller left');
});
