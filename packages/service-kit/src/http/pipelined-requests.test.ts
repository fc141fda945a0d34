import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { pino } from 'pino';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CertificatePair, createSelfSigned } from '../tls/index.ts';
import { closeGracefully } from './graceful-close.ts';
import { boundPipelining } from './pipelined-requests.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const PARSED = 'http.server.request.start';
const LAST = 'GET /last HTTP/1.1\r\nHost:a\r\nConnection: close\r\n\r\n';
const PIPELINED = 'HEAD / HTTP/1.1\r\nHost:a\r\n\r\n'.repeat(2_000) + LAST;

let certificate: CertificatePair;
let app: HttpServer;
/** The requests that were parsed in each turn of the event loop. */
let turns: number[];
let isCounting = false;

function countParsed(): void {
  if (!isCounting) {
    isCounting = true;
    turns.push(0);
    setImmediate(() => {
      isCounting = false;
    });
  }
  turns.push((turns.pop() ?? 0) + 1);
}

beforeAll(async () => {
  certificate = await createSelfSigned({ commonName: 'x', names: ['localhost'], days: 2 });
});
beforeEach(() => {
  turns = [];
  subscribe(PARSED, countParsed);
});
afterEach(async () => {
  unsubscribe(PARSED, countParsed);
  await closeGracefully(app);
});

describe.each([
  ['HTTP', false],
  ['HTTPS', true],
])('over %s', (_name, isSecure) => {
  async function open(): Promise<Socket> {
    app = createHttpServer({
      logger: pino({ level: 'silent' }),
      ...(isSecure ? { tls: certificate } : {}),
    });
    boundPipelining(app.server);
    app.get('/last', () => 'the last');
    app.addContentTypeParser('text/plain', (_request, payload, done) => done(null, payload));
    app.post('/text', async (request) => ({ body: await text(request.body as Socket) }));
    app.server.on('upgrade', (_request, socket: Socket, head: Buffer) => {
      socket.unshift(head);
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n',
      );
      socket.pipe(socket);
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const socket = isSecure
      ? connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false })
      : connect({ host: '127.0.0.1', port });
    await once(socket, isSecure ? 'secureConnect' : 'connect');
    return socket;
  }

  it.each([
    ['at once', Number.POSITIVE_INFINITY],
    ['each in a write of its own', 27],
    ['in writes that end within the end of a head', 26],
  ])(
    'pipelined requests begin a few at a time, and all are answered: sent %s',
    async (_how, size) => {
      const socket = await open();
      const answers = text(socket);
      const bytes = Buffer.from(PIPELINED);
      const first = Math.min(size, bytes.length);
      socket.write(bytes.subarray(0, first));
      for (let at = first; at < bytes.length; at += 27) socket.write(bytes.subarray(at, at + 27));
      const received = await answers;
      expect(received.match(/HTTP\/1\.1 404 /g)).toHaveLength(2_000);
      expect(received.endsWith('the last')).toBe(true);
      expect(turns.reduce((sum, count) => sum + count)).toBe(2_001);
      // The turns that are counted here may begin in the middle of another.
      expect(Math.max(...turns)).toBeLessThanOrEqual(32);
    },
  );

  it('a body with many empty lines arrives whole, and so does the next request', async () => {
    const socket = await open();
    const body = 'line\r\n\r\n'.repeat(50_000);
    const head = `POST /text HTTP/1.1\r\nHost:a\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}`;
    const answers = text(socket);
    socket.write(`${head}\r\n\r\n${body}${LAST}`);
    const received = await answers;
    expect(received).toContain(JSON.stringify({ body }));
    expect(received.endsWith('the last')).toBe(true);
  });

  it('what follows an upgrade arrives whole', async () => {
    const socket = await open();
    const body = 'line\r\n\r\n'.repeat(50_000);
    socket.write('GET / HTTP/1.1\r\nHost:a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.end(body);
    const received = await text(socket);
    expect(received.slice(received.indexOf('\r\n\r\n') + 4) === body).toBe(true);
  });
});
