import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { INTERNAL_PREFIX } from '@svc/contract';
import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import { NO_DRAIN } from '../process/drain-times.ts';
import { closeGracefully } from './graceful-close.ts';
import { RequestDrain } from './request-drain.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const FAR_MS = 60_000;
const REPORT = `${INTERNAL_PREFIX}/report`;
const never = new AbortController().signal;

let app: HttpServer;

afterEach(() => closeGracefully(app, 0));

/** A server whose route `/work` answers when `release` is called. */
async function start() {
  const drain = new RequestDrain(({ url }) => url.startsWith('/work'));
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  app = createHttpServer({ logger: pino({ level: 'silent' }) });
  drain.watch(app);
  app.get('/work', async () => {
    begun.resolve();
    await released.promise;
    return {};
  });
  app.get('/work/quick', async () => ({}));
  const streamed = new PassThrough();
  app.get('/work/stream', async () => {
    streamed.write('the beginning');
    return streamed;
  });
  app.get(REPORT, async () => ({}));
  for (const path of ['/readyz', '/healthz']) app.get(path, async () => ({}));
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const get = async (path: string, signal = never) => {
    const { status, headers, body } = await fetch(origin + path, { signal });
    await body?.cancel();
    return { status, headers: Object.fromEntries(headers) };
  };
  const statusOf = async (path: string) => (await get(path)).status;
  return {
    drain,
    origin,
    get,
    statusOf,
    streamed,
    begun: begun.promise,
    release: released.resolve,
  };
}

/** A connection of a client that keeps it open. */
class Connection {
  readonly opened: Promise<unknown>;
  readonly closed: Promise<unknown>;
  readonly #socket: Socket;

  constructor(origin: string) {
    this.#socket = connect(Number(new URL(origin).port), '127.0.0.1');
    this.opened = new Promise((resolve) => this.#socket.once('connect', resolve));
    this.closed = new Promise((resolve) => this.#socket.once('close', resolve));
    // Ends it as a close does.
    this.#socket.on('error', () => this.#socket.destroy());
    this.#socket.resume();
  }

  /** Sends a request. Resolves with the first bytes of the answer. */
  async get(path: string): Promise<string> {
    const answer = once(this.#socket, 'data');
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const [bytes] = await answer;
    return String(bytes);
  }
}

it('is not ready during the notice, but still accepts work, on connections that close', async () => {
  const { drain, get, statusOf } = await start();
  expect((await get('/work/quick')).headers.connection).toBe('keep-alive');
  const hurry = new AbortController();
  const drained = drain.run({ noticeMs: FAR_MS, workMs: FAR_MS }, hurry.signal);
  expect(await statusOf('/readyz')).toBe(503);
  expect(await statusOf('/healthz')).toBe(200);
  const work = await get('/work/quick');
  expect(work).toMatchObject({ status: 200, headers: { connection: 'close' } });
  // Workers and runtime hosts leave it as well, while another control plane can take their requests.
  expect((await get(REPORT)).headers.connection).toBe('close');
  hurry.abort();
  expect(await drained).toBe(0);
});

it('then refuses new work with Retry-After, and waits for the work in progress', async () => {
  const { drain, get, statusOf, begun, release } = await start();
  const inProgress = get('/work');
  await begun;
  let isDrained = false;
  const drained = drain.run({ noticeMs: 0, workMs: FAR_MS }, never).then((left) => {
    isDrained = true;
    return left;
  });
  await expect.poll(() => drain.isRefusing).toBe(true);
  expect(await get('/work/quick')).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1', connection: 'close' },
  });
  expect(await statusOf('/healthz')).toBe(200);
  expect(await statusOf(REPORT)).toBe(200);
  expect(isDrained).toBe(false);
  release();
  expect(await inProgress).toMatchObject({ status: 200, headers: { connection: 'close' } });
  expect(await drained).toBe(0);
});

it('closes connections that wait for another request, but not one that is new', async () => {
  const { drain, origin, begun, release } = await start();
  const [idle, busy, fresh] = [
    new Connection(origin),
    new Connection(origin),
    new Connection(origin),
  ];
  await fresh.opened;
  expect(await idle.get('/work/quick')).toContain('keep-alive');
  const work = busy.get('/work');
  await begun;
  const drained = drain.run({ noticeMs: 1, workMs: FAR_MS }, never);
  await idle.closed;
  expect(await fresh.get('/healthz')).toContain('200 OK');
  release();
  expect(await work).toContain('200 OK');
  await Promise.all([busy.closed, drained]);
});

it('closes a connection after a response whose head was sent before', async () => {
  const { drain, origin, streamed } = await start();
  const connection = new Connection(origin);
  const head = connection.get('/work/stream');
  expect(await head).toContain('keep-alive');
  const drained = drain.run({ noticeMs: 0, workMs: FAR_MS }, never);
  streamed.end('the rest');
  await connection.closed;
  expect(await drained).toBe(0);
});

it('gives up waiting at its bound, or when it is told to', async () => {
  const { drain, get, begun, release } = await start();
  const inProgress = get('/work');
  await begun;
  expect(await drain.run(NO_DRAIN, never)).toBe(1);
  expect(await drain.run({ noticeMs: 0, workMs: 20 }, never)).toBe(1);
  const hurry = new AbortController();
  const drained = drain.run({ noticeMs: FAR_MS, workMs: FAR_MS }, hurry.signal);
  hurry.abort();
  expect(await drained).toBe(1);
  release();
  await inProgress;
});

it('does not wait for the work of a caller that has left', async () => {
  const { drain, get, begun } = await start();
  const caller = new AbortController();
  const left = expect(get('/work', caller.signal)).rejects.toThrow();
  await begun;
  caller.abort();
  await left;
  expect(await drain.run({ noticeMs: 0, workMs: FAR_MS }, never)).toBe(0);
});
