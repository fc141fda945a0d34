import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type RequestOptions, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpServer } from '../http/server.ts';
import { createSelfSigned, issueCertificate } from './certificate.ts';
import { ensureLocalTls } from './local-ca.ts';

let root: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-tls-'));
});

afterAll(() => rm(root, { recursive: true, force: true }));

/** Serves one request over TLS and returns the status that the client receives. */
async function serveOnce(
  tls: { cert: string; key: string },
  client: { ca: string; servername?: string; host?: string },
): Promise<number> {
  const app = createHttpServer({ logger: pino({ level: 'silent' }), tls });
  app.get('/', () => ({ ok: true }));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  try {
    return await statusOf({ host: '127.0.0.1', port: address.port, agent: false, ...client });
  } finally {
    await app.close();
  }
}

function statusOf(options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    request(options, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}

describe('local TLS', () => {
  it('serves every local name, to clients that trust the CA file only', async () => {
    const directory = join(root, 'names');
    const tls = await ensureLocalTls({ directory, extraNames: ['svc.test', '10.1.2.3'] });
    expect(await readFile(tls.caFile, 'utf8')).toBe(tls.ca);
    for (const servername of ['localhost', 'svc.test']) {
      expect(await serveOnce(tls, { ca: tls.ca, servername })).toBe(200);
    }
    expect(await serveOnce(tls, { ca: tls.ca })).toBe(200);
    await expect(serveOnce(tls, { ca: tls.ca, servername: 'other.test' })).rejects.toThrow(
      'altnames',
    );
    const stranger = await ensureLocalTls({ directory: join(root, 'stranger') });
    await expect(serveOnce(tls, { ca: stranger.ca })).rejects.toThrow(/certificate|signature/);
  });

  it('makes keys readable by the owner only', async () => {
    const directory = join(root, 'modes');
    await ensureLocalTls({ directory });
    for (const name of ['ca-key.pem', 'server-key.pem']) {
      expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600);
    }
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
  });

  it('keeps valid certificates and replaces all others', async () => {
    const directory = join(root, 'renewal');
    const first = await ensureLocalTls({ directory });
    expect(await ensureLocalTls({ directory })).toEqual(first);

    const renamed = await ensureLocalTls({ directory, extraNames: ['new.test'] });
    expect(renamed.ca).toBe(first.ca);
    expect(renamed.cert).not.toBe(first.cert);

    const ca = { cert: first.ca, key: await readFile(join(directory, 'ca-key.pem'), 'utf8') };
    const ending = await issueCertificate(ca, {
      commonName: 'svc',
      names: ['localhost', 'new.test'],
      days: 10,
    });
    await writeFile(join(directory, 'server.pem'), ending.cert);
    await writeFile(join(directory, 'server-key.pem'), ending.key);
    const renewed = await ensureLocalTls({ directory });
    expect(renewed.cert).not.toBe(ending.cert);

    await writeFile(join(directory, 'server-key.pem'), 'damaged');
    const mended = await ensureLocalTls({ directory });
    expect(mended.ca).toBe(first.ca);
    expect(mended.key).not.toBe('damaged');

    await rm(join(directory, 'ca-key.pem'));
    const replaced = await ensureLocalTls({ directory });
    expect(replaced.ca).not.toBe(first.ca);
    expect(await serveOnce(replaced, { ca: replaced.ca, servername: 'localhost' })).toBe(200);
  });
});

describe('a self-signed certificate', () => {
  it('is trusted only by clients that pin it', async () => {
    const make = () => createSelfSigned({ commonName: 'worker-1', names: ['127.0.0.1'], days: 30 });
    const [mine, other] = await Promise.all([make(), make()]);
    expect(await serveOnce(mine, { ca: mine.cert })).toBe(200);
    await expect(serveOnce(other, { ca: mine.cert })).rejects.toThrow(/certificate/);
  });
});
