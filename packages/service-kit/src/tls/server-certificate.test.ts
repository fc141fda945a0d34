import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { registerCertificateMetrics } from '../metrics/certificate-metrics.ts';
import { type CertificatePair, createSelfSigned } from './certificate.ts';
import { ServerCertificate } from './server-certificate.ts';

let first: CertificatePair;
let second: CertificatePair;
let certificate: ServerCertificate;
let app: HttpServer;

const make = (days: number) => createSelfSigned({ commonName: 'svc', names: ['127.0.0.1'], days });

beforeEach(async () => {
  [first, second] = await Promise.all([make(1), make(9)]);
  certificate = new ServerCertificate(first);
  app = createHttpServer({ logger: pino({ level: 'silent' }), tls: certificate });
  app.get('/', async () => 'hello');
  await app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(() => app.close());

/** Connects, trusting one certificate only. */
async function dial({ cert }: CertificatePair) {
  const { port } = app.server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, ca: cert });
  await once(socket, 'secureConnect');
  return socket;
}

async function ask(socket: Awaited<ReturnType<typeof dial>>): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  const [answer] = await once(socket, 'data');
  return String(answer);
}

test('new connections get the new certificate, and open ones go on', async () => {
  const before = await dial(first);
  expect(certificate.replace(second)).toBe(true);
  await expect(dial(first)).rejects.toThrow();
  const after = await dial(second);
  for (const socket of [before, after]) expect(await ask(socket)).toContain('200 OK');
  for (const socket of [before, after]) socket.destroy();
});

test('one that no server could use is refused, and changes nothing', async () => {
  for (const pair of [
    { cert: second.cert, key: first.key },
    { cert: 'nonsense', key: second.key },
    { cert: second.cert, key: '' },
  ]) {
    expect(() => certificate.replace(pair)).toThrow();
  }
  expect(certificate.replace(first)).toBe(false);
  const socket = await dial(first);
  expect(await ask(socket)).toContain('200 OK');
  socket.destroy();
});

test('the metric shows when the certificate in use expires', async () => {
  const registry = new Registry();
  registerCertificateMetrics(registry, 'worker', certificate);
  const expiry = async () => {
    const text = await registry.metrics();
    return Number(/^svc_worker_certificate_expiry_timestamp_seconds (.*)$/m.exec(text)?.[1]);
  };
  const before = await expiry();
  certificate.replace(second);
  expect((await expiry()) - before).toBeGreaterThan(7 * 86_400);
});

test('a server that has closed is told of no more certificates', async () => {
  await app.close();
  expect(certificate.replace(second)).toBe(true);
});
