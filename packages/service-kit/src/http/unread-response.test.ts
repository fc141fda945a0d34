import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { createLogger } from '../logging/index.ts';
import { createSelfSigned } from '../tls/index.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const MIB = 1024 * 1024;
const BODY_BYTES = 32 * MIB;

let app: HttpServer;
let client: Socket;

afterEach(async () => {
  client.destroy();
  await app.close();
});

/** Starts a server and sends it a request for `path`, of whose response nothing is read. */
async function request(path: string, unreadResponseMs: number, secure: boolean) {
  const tls = await createSelfSigned({ commonName: 'test', names: ['localhost'], days: 1 });
  app = createHttpServer({
    logger: createLogger({ level: 'silent' }),
    ...(secure ? { tls } : {}),
    unreadResponseMs,
  });
  const closed = Promise.withResolvers<boolean>();
  app.addHook('onRequest', (_request, reply, done) => {
    reply.raw.once('close', () => closed.resolve(reply.raw.writableFinished));
    done();
  });
  const chunks = () => Readable.from(Array(32).fill(Buffer.alloc(MIB)), { objectMode: false });
  app.get('/stream', (_request, reply) => reply.send(chunks()));
  app.get('/whole', (_request, reply) => reply.send(Buffer.alloc(BODY_BYTES)));
  app.get('/late', async () => {
    await delay(5 * unreadResponseMs);
    return 'late';
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as { port: number };
  client = secure
    ? connectTls({ host: '127.0.0.1', port, ca: tls.cert, servername: 'localhost' })
    : connect({ host: '127.0.0.1', port });
  client.on('error', () => undefined);
  await once(client, secure ? 'secureConnect' : 'connect');
  client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  return { finished: closed.promise };
}

describe.each([
  ['HTTP', false],
  ['HTTPS', true],
])('over %s', (_name, secure) => {
  it.each(['/stream', '/whole'])('a response that nobody reads is cut off: %s', async (path) => {
    const { finished } = await request(path, 200, secure);
    expect(await finished).toBe(false);
  });

  it.each(['/stream', '/whole'])('one that is read slowly is not: %s', async (path) => {
    const { finished } = await request(path, 2_000, secure);
    let read = 0;
    const until = performance.now() + 5_000;
    // A little at a time, for longer than the limit, then the rest.
    while (performance.now() < until) {
      await delay(50);
      read += (client.read() as Buffer | null)?.length ?? 0;
    }
    client.on('data', (chunk: Buffer) => {
      read += chunk.length;
    });
    expect(await finished).toBe(true);
    await expect.poll(() => read).toBeGreaterThan(BODY_BYTES);
  });

  it('one that is only late is not, nor is the next one on its connection', async () => {
    await request('/late', 200, secure);
    let text = '';
    client.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await expect.poll(() => text, { timeout: 10_000 }).toMatch(/late$/);
    client.write('GET /late HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => text, { timeout: 10_000 }).toMatch(/late[\s\S]*late$/);
  });
});
