import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import type { Readable } from 'node:stream';
import { OCTET_STREAM_MEDIA_TYPE, ServiceError } from '@svc/contract';
import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import { acceptStreamOnly } from './body-parsers.ts';
import { createHttpServer } from './server.ts';

const BODY = Buffer.alloc(2 * 1024 * 1024);
const cleanUp: (() => unknown)[] = [];

afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

/** A server that refuses an upload after reading one chunk, and a client with one connection to it. */
async function refusingServer(unreadBodyMs?: number) {
  const app = createHttpServer({
    logger: pino({ level: 'silent' }),
    ...(unreadBodyMs === undefined ? {} : { unreadBodyMs }),
  });
  await app.register(async (scope) => {
    acceptStreamOnly(scope, OCTET_STREAM_MEDIA_TYPE);
    scope.post('/refused', async ({ body }) => {
      const source = body as Readable;
      source.on('data', () => source.pause());
      await once(source, 'data');
      throw new ServiceError('sandbox_not_running');
    });
  });
  app.get('/next', () => ({ ok: true }));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  cleanUp.push(
    () => app.close(),
    () => agent.destroy(),
  );
  return (method: string, path: string) =>
    request({
      agent,
      port: address.port,
      method,
      path,
      headers: method === 'POST' ? { 'content-type': OCTET_STREAM_MEDIA_TYPE } : {},
    });
}

it('accepts the next request on a connection after refusing an upload half-way', async () => {
  const send = await refusingServer();
  const upload = send('POST', '/refused');
  upload.end(BODY);
  const [refused] = (await once(upload, 'response')) as [IncomingMessage];
  expect(refused.statusCode).toBe(409);
  refused.resume();
  await once(upload, 'close');
  const next = send('GET', '/next').end();
  const [answer] = (await once(next, 'response')) as [IncomingMessage];
  expect(next.reusedSocket).toBe(true);
  expect(await answer.toArray().then(String)).toBe('{"ok":true}');
});

it('closes a connection when the rest of a refused body does not arrive', async () => {
  const send = await refusingServer(50);
  const upload = send('POST', '/refused');
  const closed = Promise.withResolvers<void>();
  upload.on('close', closed.resolve);
  upload.write(BODY);
  const [refused] = (await once(upload, 'response')) as [IncomingMessage];
  expect(refused.statusCode).toBe(409);
  refused.resume();
  // The client sees an end or a reset, depending on the data in flight.
  upload.on('error', () => undefined);
  await closed.promise;
});
