import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { pino } from 'pino';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CertificatePair, createSelfSigned } from '../tls/index.ts';
import { closeGracefully } from './graceful-close.ts';
import { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts';

const HEADER = 'PROXY TCP4 203.0.113.7 10.0.0.5 54321 8443\r\n';
const LOCAL = Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex');
const REQUEST = 'GET /ip HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

let certificate: CertificatePair;
let app: HttpServer;

beforeAll(async () => {
  certificate = await createSelfSigned({ commonName: 'x', names: ['localhost'], days: 2 });
});
afterEach(() => closeGracefully(app));

/** A server that tells a client its address at `/ip`, and connects with it over TCP. */
async function open(options: Partial<HttpServerOptions>): Promise<Socket> {
  const logger = pino({ level: 'silent' });
  app = createHttpServer({ logger, proxyProtocol: ['127.0.0.0/8'], ...options });
  app.get('/ip', async ({ ip }) => `ip=${ip};`);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

describe.each([
  ['plain HTTP', () => ({}), (socket: Socket) => socket],
  [
    'TLS',
    () => ({ tls: certificate }),
    (socket: Socket) => connectTls({ socket, rejectUnauthorized: false }),
  ],
])('over %s', (_which, settings, secure) => {
  const ask = (socket: Socket) => text(secure(socket).end(REQUEST));

  it('a client behind a load balancer has its own address', async () => {
    const socket = await open(settings());
    socket.write(HEADER);
    expect(await ask(socket)).toContain('ip=203.0.113.7;');
  });

  it('a header may come in pieces, and what follows with it', async () => {
    const socket = await open(settings());
    socket.setNoDelay();
    for (const byte of HEADER.slice(0, -3)) {
      await new Promise((written) => socket.write(byte, written));
    }
    socket.cork();
    socket.write(HEADER.slice(-3));
    setImmediate(() => socket.uncork());
    expect(await ask(socket)).toContain('ip=203.0.113.7;');
  });

  it('several requests of a connection have its address', async () => {
    const socket = await open(settings());
    socket.write(HEADER);
    const client = secure(socket);
    let answers = '';
    client.on('data', (data) => {
      answers += data;
    });
    for (const count of [1, 2]) {
      client.write('GET /ip HTTP/1.1\r\nHost: x\r\n\r\n');
      await expect.poll(() => answers.match(/ip=203\.0\.113\.7;/g)).toHaveLength(count);
    }
    socket.destroy();
  });

  it('a health check of the load balancer has the address of that', async () => {
    const socket = await open(settings());
    socket.write(LOCAL);
    expect(await ask(socket)).toContain('ip=127.0.0.1;');
  });

  it('others have no header', async () => {
    const socket = await open({ ...settings(), proxyProtocol: ['127.0.0.2', '10.0.0.0/8'] });
    expect(await ask(socket)).toContain('ip=127.0.0.1;');
  });

  it('a header of another than a load balancer is a bad request', async () => {
    const socket = await open({ ...settings(), proxyProtocol: ['127.0.0.2'] });
    expect(await text(socket.end(HEADER + REQUEST))).not.toContain('ip=');
  });

  it.each([
    ['no header', REQUEST],
    ['the end', ''],
  ])('a load balancer that sends %s is disconnected', async (_what, bytes) => {
    const socket = await open(settings());
    expect(await text(socket.end(bytes))).toBe('');
  });

  it('a load balancer that sends a part of its header is disconnected after a time', async () => {
    const socket = await open({ ...settings(), headersTimeoutMs: 100 });
    socket.write(HEADER.slice(0, 7));
    expect(await text(socket)).toBe('');
  });

  it('the header does not make X-Forwarded-For trusted', async () => {
    const socket = await open({ ...settings(), trustProxy: ['127.0.0.1'] });
    socket.write(HEADER);
    const request = REQUEST.replace('Host', 'X-Forwarded-For: 198.51.100.1\r\nHost');
    expect(await text(secure(socket).end(request))).toContain('ip=203.0.113.7;');
  });

  it('a connection without its header does not hold up the end of the server', async () => {
    const socket = await open({ ...settings(), headersTimeoutMs: 600_000 });
    const ended = once(socket.resume(), 'close');
    await closeGracefully(app, 600_000);
    await ended;
  });
});
