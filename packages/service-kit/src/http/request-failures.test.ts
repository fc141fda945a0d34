import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { ServiceError } from '@svc/contract';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpServer, type HttpServer } from './server.ts';

let app: HttpServer;
/** What is logged, at the usual level unless a test says otherwise. */
let lines: Record<string, unknown>[];

beforeEach(() => {
  lines = [];
  app = serve('info');
});
afterEach(() => app.close());

function serve(level: string): HttpServer {
  const write = (text: string) => {
    const line = JSON.parse(text);
    if (!String(line.msg).startsWith('Server listening')) lines.push(line);
  };
  return createHttpServer({
    logger: pino({ level }, { write }),
    caller: ({ headers }) => ({ tenant_id: headers['x-tenant']?.toString() }),
  });
}

test('a failure that is repeated has one line a minute for each account', async () => {
  app.get('/broken', () => {
    throw new ServiceError('worker_unreachable');
  });
  app.get('/bug', () => {
    throw new Error('the cause');
  });
  const ask = (url: string, tenant: string) => app.inject({ url, headers: { 'x-tenant': tenant } });
  for (let round = 0; round < 100; round += 1) {
    expect((await ask('/broken', 'a')).statusCode).toBe(503);
    expect((await ask('/bug', 'a')).statusCode).toBe(500);
  }
  await ask('/broken', 'b');
  // One a minute of each, however long these take.
  expect(lines.length).toBeLessThan(20);
  expect(lines.slice(0, 2)).toMatchObject([
    { level: 40, route: '/broken', code: 'worker_unreachable', omitted: 0 },
    { level: 50, route: '/bug', err: { message: 'the cause' }, omitted: 0 },
  ]);
  expect(lines.at(-1)).toMatchObject({ route: '/broken', omitted: 0 });
});

test('two bugs behind one route have a line each, whatever a client makes them say', async () => {
  app.get('/bugs', ({ headers }) => {
    if (headers['x-second'] !== undefined) throw new TypeError(`${headers['x-second']}`);
    throw new TypeError('first');
  });
  await app.inject({ url: '/bugs' });
  for (const second of ['a', 'b', 'c']) {
    await app.inject({ url: '/bugs', headers: { 'x-second': second } });
  }
  expect(lines).toMatchObject([{ err: { message: 'first' } }, { err: { message: 'a' } }]);
});

test('a failure without a line of its own has one at debug level', async () => {
  await app.close();
  app = serve('debug');
  app.get('/broken', () => {
    throw new ServiceError('worker_unreachable', undefined, { cause: new Error('why') });
  });
  const ids = [];
  for (let round = 0; round < 2; round += 1) {
    ids.push((await app.inject({ url: '/broken' })).headers['x-request-id']);
  }
  const failed = lines.filter(({ msg }) => msg === 'request failed');
  expect(failed).toMatchObject([
    { level: 40, request_id: ids[0], omitted: 0 },
    { level: 20, request_id: ids[1], code: 'worker_unreachable', err: { message: 'why' } },
  ]);
});

test('the log does not grow with the number of downloads that break off', async () => {
  let closed = 0;
  app.get('/left', (_request, reply) => {
    reply.raw.once('close', () => {
      closed += 1;
    });
    return reply.send(Readable.from(endless()));
  });
  app.get('/torn', (_request, reply) => reply.send(Readable.from(torn())));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  for (let round = 0; round < 20; round += 1) {
    for (const path of ['/left', '/torn']) {
      const sent = request({ port, path, agent: false });
      sent.on('error', () => undefined);
      const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
      response.on('error', () => undefined);
      const ended = new Promise((resolve) => response.once('close', resolve));
      if (path === '/left') response.destroy();
      else response.resume();
      await ended;
    }
  }
  await expect.poll(() => closed).toBe(20);
  expect(lines.length).toBeLessThan(10);
  expect(lines[0]).toMatchObject({ level: 40, route: '/torn', err: { message: 'torn' } });
});

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) {
    await setImmediate();
    yield Buffer.alloc(1_000);
  }
}

async function* torn(): AsyncGenerator<Buffer> {
  yield Buffer.alloc(1_000);
  await setImmediate();
  throw new Error('torn');
}
