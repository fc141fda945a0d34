import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { exchange } from './exchange.ts';

let server: Server;
let connection: Socket;

beforeEach(async () => {
  server = createServer((socket) => socket.on('error', () => socket.destroy()).resume());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  connection = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(connection, 'connect');
});
afterEach(() => {
  connection.destroy();
  server.close();
});

const ask = (idleMs: number, signal: AbortSignal) =>
  exchange(connection, { method: 'GET', path: '/', headers: {}, body: undefined, idleMs, signal });

test('a server that does not answer is an error after its time', async () => {
  const never = new AbortController().signal;
  await expect(ask(100, never)).rejects.toMatchObject({ code: 'port_timeout' });
  expect(connection.destroyed).toBe(true);
});

test('a caller that leaves ends the connection', async () => {
  const caller = new AbortController();
  const answer = ask(60_000, caller.signal);
  caller.abort(new Error('left'));
  await expect(answer).rejects.toThrow('left');
  expect(connection.destroyed).toBe(true);
});
