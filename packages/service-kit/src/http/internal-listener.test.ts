import { once } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeGracefully } from './graceful-close.ts';
import { listenInternally } from './internal-listener.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const LOOPBACK = { host: '127.0.0.1', port: 0 };

let app: HttpServer;
let publicUrl: string;
let internalPort: number;
let release: () => void;

beforeEach(async () => {
  app = createHttpServer({
    logger: pino({ level: 'silent' }),
    exposureOf: (route) => {
      if (route === '/health') return 'both';
      return route.startsWith('/internal') ? 'internal' : 'public';
    },
  });
  const released = Promise.withResolvers<void>();
  release = released.resolve;
  for (const path of ['/health', '/thing', '/internal/thing']) {
    app.get(path, async () => ({ path }));
  }
  app.get('/internal/slow', async () => {
    await released.promise;
    return { done: true };
  });
  internalPort = await listenInternally(app, LOOPBACK);
  publicUrl = await app.listen(LOOPBACK);
});
afterEach(() => app.close());

const statusOf = async (url: string) => (await fetch(url)).status;
const internalUrl = () => `http://127.0.0.1:${internalPort}`;

test('each route is served at the addresses of its exposure alone', async () => {
  expect(await statusOf(`${publicUrl}/thing`)).toBe(200);
  expect(await statusOf(`${publicUrl}/internal/thing`)).toBe(404);
  expect(await statusOf(`${publicUrl}/health`)).toBe(200);
  expect(await statusOf(`${internalUrl()}/thing`)).toBe(404);
  expect(await statusOf(`${internalUrl()}/internal/thing`)).toBe(200);
  expect(await statusOf(`${internalUrl()}/health`)).toBe(200);
});

test.each([
  '/%69nternal/thing',
  '/internal%2Fthing',
  '//internal/thing',
  '/./internal/thing',
  '/internal/thing?a=/thing',
  '/INTERNAL/thing',
])('no spelling of a path reaches an internal route from outside: %s', async (path) => {
  const { hostname, port } = new URL(publicUrl);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: internal\r\nConnection: close\r\n\r\n`);
  let answer = '';
  socket.on('data', (data) => {
    answer += data;
  });
  await once(socket, 'close');
  expect(answer).toMatch(/^HTTP\/1\.1 404 /);
});

test('a route that is served elsewhere is unknown, whatever its method', async () => {
  const answer = await fetch(`${publicUrl}/internal/thing`, { method: 'DELETE' });
  expect(answer.status).toBe(404);
  expect(answer.headers.get('allow')).toBeNull();
});

test('a close answers the requests in progress at the internal address, and frees it', async () => {
  const slow = fetch(`${internalUrl()}/internal/slow`);
  await expect.poll(() => statusOf(`${internalUrl()}/health`)).toBe(200);
  const closed = closeGracefully(app, 60_000);
  release();
  expect(await (await slow).json()).toEqual({ done: true });
  await closed;
  await expect(fetch(`${internalUrl()}/health`)).rejects.toThrow();
});

test('a taken address is the error of the operating system', async () => {
  await using other = createHttpServer({ logger: pino({ level: 'silent' }) });
  const taken = { host: '127.0.0.1', port: internalPort };
  await expect(listenInternally(other, taken)).rejects.toMatchObject({
    code: 'EADDRINUSE',
    syscall: 'listen',
    port: internalPort,
  });
});
