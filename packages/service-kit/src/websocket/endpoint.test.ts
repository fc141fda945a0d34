import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { ServiceError } from '@svc/contract';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { closeGracefully } from '../http/graceful-close.ts';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { routeUpgrades, type Upgrade, WebSocketEndpoint } from './index.ts';

const HANDSHAKE_MS = 200;
const MAX_MESSAGE_BYTES = 16;
const HANDSHAKE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

const apps: HttpServer[] = [];

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => closeGracefully(app, 0)));
});

/** A server with an echo at `/echo`, which calls `admit` before it accepts, and a plain route at `/plain`. */
async function serve(admit: (upgrade: Upgrade) => Promise<void> = async () => undefined) {
  const app = createHttpServer({ logger: pino({ level: 'silent' }) });
  apps.push(app);
  const endpoint = new WebSocketEndpoint({
    protocol: 'test.v1',
    maxMessageBytes: MAX_MESSAGE_BYTES,
  });
  routeUpgrades(app, HANDSHAKE_MS);
  app.get('/plain', async () => ({ plain: true }));
  app.get('/echo', { config: { webSocket: true } }, async (request, reply) => {
    const upgrade = endpoint.begin(request);
    await admit(upgrade);
    const ws = endpoint.accept(upgrade, request, reply)?.ws;
    ws?.on('error', () => undefined);
    ws?.on('message', (data) => ws.send(data.toString()));
    return reply;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  return address.port;
}

async function open(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/echo`, ['test.v1', 'other']);
  await once(socket, 'open');
  return socket;
}

test('answers with the request id', async () => {
  const port = await serve();
  const headers = { 'x-request-id': 'mine' };
  const socket = new WebSocket(`ws://127.0.0.1:${port}/echo`, { headers });
  const [response] = (await once(socket, 'upgrade')) as [IncomingMessage];
  expect(response.headers['x-request-id']).toBe('mine');
  socket.terminate();
});

/** Sends a request head and returns everything until the server closes the connection. */
async function exchange(port: number, path: string, headers: readonly string[]): Promise<string> {
  const socket = await send(port, path, headers);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function send(port: number, path: string, headers: readonly string[]): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write([`GET ${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n'));
  return socket;
}

test('accepts a WebSocket with its subprotocol', async () => {
  const socket = await open(await serve());
  expect(socket.protocol).toBe('test.v1');
  socket.send('hello');
  expect(String((await once(socket, 'message'))[0])).toBe('hello');
  socket.close();
  await once(socket, 'close');
});

test('closes a WebSocket with 1009 after a message over the maximum', async () => {
  const socket = await open(await serve());
  socket.send('x'.repeat(MAX_MESSAGE_BYTES + 1));
  expect((await once(socket, 'close'))[0]).toBe(1009);
});

test.each(['/plain', '/unknown'])('refuses an upgrade of %s with 404', async (path) => {
  const text = await exchange(await serve(), path, HANDSHAKE);
  expect(text).toMatch(/^HTTP\/1\.1 404 /);
  expect(text).toContain('application/problem+json');
  expect(text).toContain('"code":"route_not_found"');
});

test('refuses a plain request for a WebSocket route with 404', async () => {
  const sent = request({ port: await serve(), host: '127.0.0.1', path: '/echo' }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(404);
});

test.each([
  ['version', HANDSHAKE.map((line) => line.replace('13', '8'))],
  ['key', HANDSHAKE.map((line) => line.replace('==', ''))],
])('refuses a handshake with a wrong %s with 400', async (_name, headers) => {
  const text = await exchange(await serve(), '/echo', headers);
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text.toLowerCase()).toContain('sec-websocket-version: 13');
});

test('answers a refusal of the route as a problem and closes the connection', async () => {
  const port = await serve(async () => {
    throw new ServiceError('rate_limited', undefined, { headers: { 'retry-after': '5' } });
  });
  const text = await exchange(port, '/echo', HANDSHAKE);
  expect(text).toMatch(/^HTTP\/1\.1 429 /);
  expect(text.toLowerCase()).toContain('retry-after: 5');
  expect(text).toContain('"code":"rate_limited"');
});

test('tells the route when the client leaves during the handshake', async () => {
  const left = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const port = await serve(async ({ gone }) => {
    gone.addEventListener('abort', () => left.resolve());
    begun.resolve();
    await left.promise;
  });
  const socket = await send(port, '/echo', HANDSHAKE);
  await begun.promise;
  socket.resetAndDestroy();
  await left.promise;
});

test('cuts a connection whose handshake takes too long', async () => {
  const late = Promise.withResolvers<void>();
  const port = await serve(() => late.promise);
  expect(await exchange(port, '/echo', HANDSHAKE)).toBe('');
  late.resolve();
});

test('keeps an accepted WebSocket beyond the handshake time', async () => {
  const socket = await open(await serve());
  const closed = once(socket, 'close').then(() => 'closed');
  const waited = new Promise((resolve) => setTimeout(resolve, 2 * HANDSHAKE_MS, 'open'));
  expect(await Promise.race([closed, waited])).toBe('open');
  socket.terminate();
});
