import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TreeWatch } from './tree-watch.ts';

const GENERATION = 'ab'.repeat(16);
const YES = Buffer.from([1]);

let server: Server;
let sockets: Socket[];
let watch: TreeWatch;
/** What the guest answers to the request, as a line of JSON, and to each question. */
let welcome: object;
let answers: (Buffer | 'close')[];
let questions: string[];

const signal = () => AbortSignal.timeout(30_000);

beforeEach(async () => {
  sockets = [];
  welcome = { ok: true, watched: true };
  answers = [];
  questions = [];
  server = createServer(serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const address = { host: '127.0.0.1', port };
  watch = new TreeWatch({ address, token: 'token', root: '/root' });
});
afterEach(async () => {
  watch.close();
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, 'close');
});

function serve(socket: Socket): void {
  sockets.push(socket);
  socket.on('error', () => socket.destroy());
  createInterface(socket).once('line', (line) => {
    expect(JSON.parse(line)).toEqual({ op: 'tree-watch', root: '/root', token: 'token' });
    socket.write(`${JSON.stringify(welcome)}\n`);
    socket.on('data', (question: Buffer) => {
      questions.push(question.toString('hex'));
      const answer = answers.shift() ?? YES;
      if (answer === 'close') socket.destroy();
      else socket.write(answer);
    });
  });
}

it('asks on one connection', async () => {
  answers = [YES, Buffer.from([0]), YES];
  await watch.open(signal());
  for (const expected of [true, false, true]) {
    expect(await watch.isUnchanged(GENERATION, signal())).toBe(expected);
  }
  expect(questions).toEqual([GENERATION, GENERATION, GENERATION]);
  expect(sockets).toHaveLength(1);
});

it('connects again after the guest has ended the connection', async () => {
  answers = ['close'];
  expect(await watch.isUnchanged(GENERATION, signal())).toBe(false);
  expect(await watch.isUnchanged(GENERATION, signal())).toBe(true);
  expect(sockets).toHaveLength(2);
});

it.each([
  ['cannot watch', { ok: true, watched: false }],
  ['is older', { error: 'internal', message: 'unknown operation' }],
  ['answers something else', { ok: true }],
])('asks no more when the guest %s', async (_name, answer) => {
  welcome = answer;
  expect(await watch.isUnchanged(GENERATION, signal())).toBe(false);
  expect(await watch.isUnchanged(GENERATION, signal())).toBe(false);
  expect(questions).toEqual([]);
  expect(sockets).toHaveLength(1);
});

it.each([
  ['more than a byte', Buffer.from([1, 1])],
  ['another byte', Buffer.from([2])],
])('does not believe a guest that answers %s', async (_name, answer) => {
  answers = [answer];
  await expect(watch.isUnchanged(GENERATION, signal())).rejects.toMatchObject({ code: 'internal' });
});

it('leaves a guest that does not answer when the caller gives up', async () => {
  answers = [Buffer.alloc(0)];
  const caller = new AbortController();
  const asked = watch.isUnchanged(GENERATION, caller.signal);
  await expect.poll(() => questions).toHaveLength(1);
  caller.abort(new Error('enough'));
  await expect(asked).rejects.toThrow('enough');
  await expect.poll(() => sockets[0]?.closed).toBe(true);
});
