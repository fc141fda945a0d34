import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { type CertificatePair, createSelfSigned } from '@svc/service-kit/tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { followFiles } from './follow-files.ts';
import { openTls, rereadTls } from './tls.ts';

let directory: string;
let first: CertificatePair;
let second: CertificatePair;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-cli-tls-'));
  const make = () => createSelfSigned({ commonName: 'svc', names: ['localhost'], days: 1 });
  [first, second] = await Promise.all([make(), make()]);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('a certificate is replaced when its files are, and stays while they cannot be used', async () => {
  const [SVC_TLS_CERT_FILE, SVC_TLS_KEY_FILE] = ['c.pem', 'k.pem'].map((name) =>
    join(directory, name),
  ) as [string, string];
  await writeFile(SVC_TLS_CERT_FILE, first.cert);
  await writeFile(SVC_TLS_KEY_FILE, first.key);
  const config = loadConfig({ SVC_TLS_CERT_FILE, SVC_TLS_KEY_FILE });
  const paths = { tls: join(directory, 'tls') };
  const tls = await openTls(config, paths);
  const said: string[] = [];
  const stop = new AbortController();
  const logger = {
    info: (text: unknown) => void said.push(String(text)),
    error: (_: unknown, text?: unknown) => void said.push(String(text)),
  };
  const options = { logger: logger as never, signal: stop.signal, intervalMs: 5 };
  const reread = () => rereadTls(tls, config, paths);
  const following = followFiles('certificate', reread, options);

  // Half of the new one.
  await writeFile(SVC_TLS_CERT_FILE, second.cert);
  await expect.poll(() => said).toEqual(['the new certificate cannot be used; the old one stays']);
  expect(tls.server).toMatchObject(first);
  await writeFile(SVC_TLS_KEY_FILE, second.key);
  await expect.poll(() => said.at(-1)).toBe('the certificate is replaced');
  expect(tls.server).toMatchObject(second);
  expect(said).toHaveLength(2);

  stop.abort();
  await following;
});

test('without configured files, the local CA issues one', async () => {
  const paths = { tls: join(directory, 'tls') };
  const tls = await openTls(loadConfig({}), paths);
  expect(tls).toMatchObject({ caFile: join(paths.tls, 'ca.pem'), ca: expect.any(String) });
  expect(tls.server?.cert).toContain('BEGIN CERTIFICATE');
});

test('the certificate of the local CA is valid for the addresses that the service listens on', async () => {
  const config = loadConfig({
    SVC_LISTEN: '10.0.0.5:8443',
    SVC_RUNTIME_LISTEN: '[fd00::5]:8444',
    SVC_INTERNAL_LISTEN: 'internal.svc.test:8445',
  });
  const { server } = await openTls(config, { tls: join(directory, 'tls') });
  const certificate = new X509Certificate(server?.cert ?? '');
  for (const address of ['127.0.0.1', '10.0.0.5', 'fd00::5']) {
    expect(certificate.checkIP(address), address).toBeDefined();
  }
  expect(certificate.checkHost('internal.svc.test')).toBeDefined();
});
