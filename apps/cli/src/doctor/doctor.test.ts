import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  certificateCheck,
  databaseCheck,
  internalRoutesCheck,
  portsCheck,
} from './checks/configuration.ts';
import { kvmCheck, programsCheck } from './checks/host.ts';
import { objectStoreCheck } from './checks/object-store.ts';
import { resourcesCheck } from './checks/resources.ts';
import { type Check, fail, findingsText, ok, warn } from './findings.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-doctor-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

async function run(check: Check, environment: Record<string, string> = {}) {
  const config = loadConfig({ SVC_DATA_DIR: directory, SVC_IMAGE_DIR: directory, ...environment });
  return [await check.run({ config, service: undefined })].flat();
}

test('formats the findings with their fixes and a summary', () => {
  expect(
    findingsText([ok('Node', '24'), warn('KVM', 'none', 'nest'), fail('QEMU', 'no', 'install')]),
  ).toBe(
    [
      '✓ ok    Node  24',
      '! warn  KVM   none',
      '              fix: nest',
      '✗ fail  QEMU  no',
      '              fix: install',
      '',
      '1 problem(s) prevent the service from working.',
    ].join('\n'),
  );
});

test('fails if another program listens on a port', async () => {
  // A separate address: on a shared one, another process could take the port once it is free.
  const other = createServer().listen(0, '127.0.0.2');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  for (const setting of ['SVC_LISTEN', 'SVC_INTERNAL_LISTEN', 'SVC_RUNTIME_LISTEN']) {
    const listen = { SVC_LISTEN: '127.0.0.1:0', [setting]: `127.0.0.2:${port}` };
    const found = await run(portsCheck, listen);
    expect(found).toContainEqual(expect.objectContaining({ verdict: 'fail' }));
    expect(found.map(({ mend }) => mend).join()).toContain(`set ${setting} `);
  }
  other.close();
  await once(other, 'close');
  const listen = { SVC_LISTEN: `127.0.0.2:${port}`, SVC_RUNTIME_LISTEN: '127.0.0.1:0' };
  expect(await run(portsCheck, listen)).toMatchObject([{ verdict: 'ok' }, { verdict: 'ok' }]);
});

test('warns if strangers can reach the internal routes', async () => {
  expect(await run(internalRoutesCheck, { SVC_LISTEN: '0.0.0.0:8443' })).toMatchObject([
    { verdict: 'warn', mend: expect.stringContaining('SVC_INTERNAL_LISTEN') },
  ]);
  for (const settings of [
    { SVC_LISTEN: 'localhost:8443' },
    { SVC_LISTEN: '[::1]:8443' },
    { SVC_LISTEN: '0.0.0.0:8443', SVC_INTERNAL_LISTEN: '10.0.0.1:8445' },
  ]) {
    expect(await run(internalRoutesCheck, settings)).toMatchObject([{ verdict: 'ok' }]);
  }
});

test('fails without showing the password if the database does not respond', async () => {
  const url = { SVC_DATABASE_URL: 'postgres://svc:hunter2@127.0.0.1:1/svc' };
  const [finding] = await run(databaseCheck, url);
  expect(finding).toMatchObject({ verdict: 'fail' });
  expect(JSON.stringify(finding)).not.toContain('hunter2');
});

test('fails without showing the secret if the object store does not respond', async () => {
  expect(await run(objectStoreCheck)).toMatchObject([{ verdict: 'ok' }]);
  const [finding] = await run(objectStoreCheck, {
    SVC_S3_ENDPOINT: 'http://127.0.0.1:1',
    SVC_S3_REGION: 'us-east-1',
    SVC_S3_BUCKET: 'svc',
    SVC_S3_ACCESS_KEY_ID: 'id',
    SVC_S3_SECRET_ACCESS_KEY: 'hunter2',
  });
  expect(finding).toMatchObject({
    verdict: 'fail',
    detail: expect.stringContaining('127.0.0.1:1'),
  });
  expect(JSON.stringify(finding)).not.toContain('hunter2');
});

test('checks the disk of a directory that does not exist yet', async () => {
  const found = await run(resourcesCheck, { SVC_DATA_DIR: join(directory, 'not/yet') });
  expect(found.map(({ name }) => name)).toEqual(['disk, data', 'disk, images', 'memory']);
});

test('reports the KVM verdict of an earlier probe', async () => {
  await writeFile(join(directory, 'kvm.json'), '{"machine":"x","kvm":true}');
  expect(await run(kvmCheck)).toMatchObject([{ verdict: 'ok' }]);
  await writeFile(join(directory, 'kvm.json'), '{"machine":"x","kvm":false}');
  expect(await run(kvmCheck)).toMatchObject([{ verdict: 'warn' }]);
});

test('fails if the configured certificate cannot be read', async () => {
  const files = { SVC_TLS_CERT_FILE: '/nowhere.pem', SVC_TLS_KEY_FILE: '/nowhere.key' };
  expect(await run(certificateCheck, files)).toMatchObject([{ verdict: 'fail' }]);
  expect(await run(certificateCheck)).toMatchObject([{ verdict: 'ok' }]);
});

test('checks the host programs', async () => {
  expect(await run(programsCheck)).toMatchObject([{ name: 'programs' }]);
});
