import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentLines } from './agent-lines.ts';

const NEVER = new AbortController().signal;

let server: Server;
let address: { host: string; port: number };

beforeEach(async () => {
  server = createServer((socket) => socket.on('error', () => socket.destroy()).write('hello'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
});
afterEach(() => {
  server.close();
});

test('a connection is the caller’s', async () => {
  const socket = await new AgentLines(address).dial(NEVER);
  expect(String((await once(socket, 'data'))[0])).toBe('hello');
  socket.destroy();
});

test('closing cuts what is open, and opens no more', async () => {
  const lines = new AgentLines(address);
  const sockets = await Promise.all([lines.dial(NEVER), lines.dial(NEVER)]);
  lines.close();
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  await expect(lines.dial(NEVER)).rejects.toMatchObject({ code: 'guest_unreachable' });
});

test('a runtime that starts in the meantime is waited for', async () => {
  const { port } = address;
  server.close();
  await once(server, 'close');
  const dialling = new AgentLines(address).dial(NEVER);
  server.listen(port, '127.0.0.1');
  (await dialling).destroy();
});

test('one that does not answer in time is unreachable; a caller who leaves is heard at once', async () => {
  server.close();
  await once(server, 'close');
  const lines = new AgentLines(address, 100);
  await expect(lines.dial(NEVER)).rejects.toMatchObject({ code: 'guest_unreachable' });
  const left = AbortSignal.abort(new Error('the caller left'));
  await expect(lines.dial(left)).rejects.toThrow('the caller left');
});
