import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { TokenBucket } from '@svc/service-kit/concurrency';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { linkBudgets } from './link-budgets.ts';
import { LinkConnection } from './link-connection.ts';

const BURST = 1_000;

const held = linkBudgets().of('account');

let server: Server;
let guest: Socket;
let socket: Socket;
/** Never refills. */
let rate: TokenBucket;

beforeEach(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  socket = connect(address.port, '127.0.0.1');
  [guest] = (await once(server, 'connection')) as [Socket];
  rate = new TokenBucket({ perSecond: 1, burst: BURST }, () => 0);
});

afterEach(() => {
  socket.destroy();
  guest.destroy();
  server.close();
});

it('fails when a line does not end in time', { timeout: 20_000 }, async () => {
  const connection = new LinkConnection(socket, { readRate: rate, held, lineMs: 50 });
  guest.write('{"type":');
  const read = connection.messages().next();
  await expect(read).rejects.toThrow('a line took too long');
});

it('spends tokens for a read that completes no line', { timeout: 20_000 }, async () => {
  const messages = new LinkConnection(socket, { readRate: rate, held }).messages();
  guest.end('x');
  expect(await messages.next()).toEqual({ done: true, value: undefined });
  expect(rate.take(BURST - 50)).toBe(false);
});
