import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createSelfSigned } from '../tls/index.ts';
import { closeGracefully } from './graceful-close.ts';
import { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts';

const FAR_MS = 60_000;

/** A server with a route `/wait`, which answers when `release` is called. */
async function start(options: Partial<HttpServerOptions> = {}) {
  const app = createHttpServer({ logger: pino({ level: 'silent' }), ...options });
  const arrived = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  app.get('/wait', async () => {
    arrived.resolve();
    await released.promise;
    return { done: true };
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, port: portOf(app), arrived: arrived.promise, release: released.resolve };
}

function portOf(app: HttpServer): number {
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  return address.port;
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

it('closes unused connections immediately', async () => {
  const { app, port } = await start();
  const socket = await open(port);
  const closed = once(socket, 'close');
  socket.resume();
  await closeGracefully(app, FAR_MS);
  await closed;
});

it('closes connections immediately whose handshake has not begun', async () => {
  const tls = await createSelfSigned({ commonName: 'x', names: ['localhost'], days: 2 });
  const { app, port } = await start({ tls, headersTimeoutMs: FAR_MS * 10 });
  const socket = await open(port);
  const closed = once(socket, 'close');
  socket.resume();
  await closeGracefully(app, FAR_MS);
  await closed;
});

it('closes kept-alive connections immediately after their last response', async () => {
  const { app, port, release } = await start();
  release();
  const socket = await open(port);
  const closed = once(socket, 'close');
  socket.write('GET /wait HTTP/1.1\r\nHost: x\r\n\r\n');
  const [head] = (await once(socket, 'data')) as [Buffer];
  expect(head.toString()).toContain(' 200 ');
  await closeGracefully(app, FAR_MS);
  await closed;
});

it('lets a request in progress finish', async () => {
  const { app, port, arrived, release } = await start();
  const sent = request({ port, host: '127.0.0.1', path: '/wait' }).end();
  const answered = once(sent, 'response');
  await arrived;
  const closing = closeGracefully(app, FAR_MS);
  release();
  const [response] = await answered;
  expect(response.statusCode).toBe(200);
  response.resume();
  await closing;
});

it('destroys the connection of a request that outlasts the grace period', async () => {
  const { app, port, arrived, release } = await start();
  const sent = request({ port, host: '127.0.0.1', path: '/wait' }).end();
  const failed = once(sent, 'error');
  await arrived;
  await closeGracefully(app, 10);
  await failed;
  release();
});
