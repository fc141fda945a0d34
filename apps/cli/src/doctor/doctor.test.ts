import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { accelerationCheck } from './checks/acceleration.ts';
import { certificateCheck } from './checks/certificate.ts';
import { databaseCheck } from './checks/database.ts';
import { portsCheck } from './checks/ports.ts';
import { programsCheck } from './checks/programs.ts';
import { roomCheck } from './checks/room.ts';
import { type Check, fail, ok, warn } from './finding.ts';
import { findingsText } from './findings-text.ts';

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

test('findings are one screen, with how to mend each', () => {
  expect(
    findingsText([ok('Node', '24'), warn('KVM', 'none', 'nest'), fail('QEMU', 'no', 'install')]),
  ).toBe(
    [
      '✓ ok    Node  24',
      '! warn  KVM   none',
      '              mend: nest',
      '✗ fail  QEMU  no',
      '              mend: install',
      '',
      '1 problem(s) keep the service from working.',
    ].join('\n'),
  );
});

test('a port that another program holds is a failure', async () => {
  // An address of its own: on a shared one, somebody else could get the port once it is free.
  const other = createServer().listen(0, '127.0.0.2');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  for (const setting of ['SVC_LISTEN', 'SVC_RUNTIME_LISTEN']) {
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

test('a database that does not answer is a failure that does not show its password', async () => {
  const url = { SVC_DATABASE_URL: 'postgres://svc:hunter2@127.0.0.1:1/svc' };
  const [finding] = await run(databaseCheck, url);
  expect(finding).toMatchObject({ verdict: 'fail' });
  expect(JSON.stringify(finding)).not.toContain('hunter2');
});

test('room is looked for where the directories are or will be', async () => {
  const found = await run(roomCheck, { SVC_DATA_DIR: join(directory, 'not/yet') });
  expect(found.map(({ name }) => name)).toEqual(['disk, data', 'disk, images', 'memory']);
});

test('the verdict of an earlier probe is shown', async () => {
  await writeFile(join(directory, 'kvm.json'), '{"machine":"x","kvm":true}');
  expect(await run(accelerationCheck)).toMatchObject([{ verdict: 'ok' }]);
  await writeFile(join(directory, 'kvm.json'), '{"machine":"x","kvm":false}');
  expect(await run(accelerationCheck)).toMatchObject([{ verdict: 'warn' }]);
});

test('a configured certificate has to be readable', async () => {
  const files = { SVC_TLS_CERT_FILE: '/nowhere.pem', SVC_TLS_KEY_FILE: '/nowhere.key' };
  expect(await run(certificateCheck, files)).toMatchObject([{ verdict: 'fail' }]);
  expect(await run(certificateCheck)).toMatchObject([{ verdict: 'ok' }]);
});

test('every host program is looked for', async () => {
  expect(await run(programsCheck)).toMatchObject([{ name: 'programs' }]);
});
