import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type KeyedBudget, TokenBucket } from '@svc/service-kit/concurrency';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linkBudgets } from './link-budgets.ts';
import { LinkConnection } from './link-connection.ts';

const MIB = 1024 * 1024;
/** What the links of one account may hold beyond 1 MiB of each buffer. */
const ACCOUNT = 8 * MIB;
const BEGINNING = '{"type":"frame","n":1,"frame":{"type":"text_delta","data":"';
const LINE = `${BEGINNING}${'x'.repeat(4 * MIB)}"}}\n`;
/** More than the kernel buffers of both sides hold. */
const PROMPT = 'x'.repeat(20 * MIB);

let server: Server;
let budgets: KeyedBudget;
let opened: { connection: LinkConnection; guest: Socket }[];

beforeEach(async () => {
  budgets = linkBudgets(ACCOUNT);
  opened = [];
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(() => {
  for (const { connection, guest } of opened) {
    connection.close();
    guest.destroy();
  }
  server.close();
});

/** A link of an account, which reads its guest to the end. */
async function open(account: string, lineMs = 600_000) {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [guest] = (await once(server, 'connection')) as [Socket];
  guest.on('error', () => undefined);
  const connection = new LinkConnection(socket, {
    readRate: new TokenBucket({ perSecond: 1024 * MIB, burst: 1024 * MIB }),
    held: budgets.of(account),
    lineMs,
  });
  opened.push({ connection, guest });
  let lines = 0;
  const read = async () => {
    for await (const messages of connection.messages()) lines += messages.length;
  };
  const ended = read().then(
    () => 'closed',
    (error: Error) => error.message,
  );
  return { connection, guest, socket, ended, lines: () => lines };
}

test('a line waits while others of its account leave no room, and one of another account does not', async () => {
  const holding = await open('greedy');
  holding.guest.write(LINE.slice(0, -1));
  await expect.poll(() => budgets.of('greedy').left).toBe(MIB);
  const waiting = await open('greedy');
  waiting.guest.write(LINE);
  const other = await open('other');
  other.guest.write(LINE);
  await expect.poll(other.lines).toBe(1);
  expect(waiting.lines()).toBe(0);
  holding.guest.write('\n');
  await expect.poll(holding.lines).toBe(1);
  await expect.poll(waiting.lines).toBe(1);
  holding.guest.write('{"type":');
  await expect.poll(() => budgets.of('greedy').left).toBe(ACCOUNT);
});

test('short lines wait for nobody', async () => {
  const holding = await Promise.all([open('greedy'), open('greedy')]);
  for (const { guest } of holding) guest.write(LINE.slice(0, -1));
  await expect.poll(() => budgets.of('greedy').left).toBe(MIB);
  const usual = await open('greedy');
  usual.guest.write(`${BEGINNING}${'x'.repeat(MIB / 2)}"}}\n`);
  await expect.poll(usual.lines).toBe(1);
});

test('a line that gets no room in its time ends its link, which leaves room for others', async () => {
  const holding = await open('greedy');
  holding.guest.write(LINE.slice(0, -1));
  await expect.poll(() => budgets.of('greedy').left).toBe(MIB);
  const waiting = await open('greedy', 500);
  waiting.guest.write(LINE);
  expect(await waiting.ended).toBe('a line took too long');
  waiting.connection.close();
  holding.connection.close();
  await expect.poll(() => budgets.of('greedy').left).toBe(ACCOUNT);
});

test('a guest that reads nothing loses its link when its account has no room', async () => {
  const silent = await open('greedy');
  silent.guest.pause();
  silent.connection.send({ type: 'client', c: 1, frame: { type: 'task', prompt: PROMPT } });
  await once(silent.socket, 'close');
  await expect.poll(() => budgets.of('greedy').left).toBe(ACCOUNT);
  const other = await open('other');
  other.guest.pause();
  const message = {
    type: 'client',
    c: 1,
    frame: { type: 'task', prompt: 'x'.repeat(MIB) },
  } as const;
  for (let sent = 0; sent < 4; sent += 1) other.connection.send(message);
  let received = 0;
  other.guest.on('data', (chunk) => {
    received += chunk.length;
  });
  other.guest.resume();
  await expect.poll(() => received).toBeGreaterThan(4 * MIB);
  await expect.poll(() => budgets.of('other').left).toBe(ACCOUNT);
});
