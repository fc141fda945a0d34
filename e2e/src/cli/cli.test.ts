import { mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DetachedService } from '@svc/service-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Access } from '../../test/access.ts';
import { startDetachedService } from '../../test/start-service.ts';

let service: DetachedService;
let files: string;

beforeAll(async () => {
  files = await mkdtemp(join(tmpdir(), 'svc-e2e-files-'));
  service = await startDetachedService();
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await rm(files, { recursive: true, force: true });
});

const svc = async (...args: string[]) => service.svc(...args);
/** Runs a command that must succeed and returns its output. */
const ok = async (...args: string[]) => {
  const { exitCode, output } = await svc(...args);
  expect(exitCode, `svc ${args.join(' ')}\n${output}`).toBe(0);
  return output.trim();
};

test('a detached start shows a command in a sandbox and returns', () => {
  expect(service.startOutput).toContain('uname -sr → Linux');
  expect(service.startOutput).toContain('6 * 7 = 42');
  expect(service.startOutput).toContain('base_url');
  expect(service.startOutput).toContain('is ready');
});

test('the status has everything that a client needs', async () => {
  const status = JSON.parse(await ok('status', '--json')) as Record<string, unknown>;
  expect(status).toMatchObject({
    state: 'ready',
    data_dir: service.dataDir,
    base_url: expect.stringMatching(/^https:\/\/localhost:\d+$/),
    ca_file: expect.any(String),
    version: expect.any(String),
  });
  expect(status.workers).toHaveLength(1);
  expect(status.images).toContainEqual(
    expect.objectContaining({ template: 'standard', ready: true }),
  );
  const access = new Access({
    baseUrl: String(status.base_url),
    caFile: String(status.ca_file),
    dataDir: service.dataDir,
  });
  expect((await access.raw({ target: '/readyz' })).status).toBe(200);
});

test('a second start on the same data directory is refused', async () => {
  const { exitCode, output } = await svc('up', '--detach');
  expect(exitCode).not.toBe(0);
  expect(output).toMatch(/already/);
});

test('commands create, use and remove a sandbox', async () => {
  const id = await ok('sandbox', 'create', '--idle-timeout', '15m', '--env', 'NAME=cli');
  expect(id).toMatch(/^vm_[0-9a-f]{32}$/);
  expect(await ok('sandbox', 'exec', id, '--', 'sh', '-c', 'echo "hello $NAME"')).toBe('hello cli');
  const failing = await svc('sandbox', 'exec', id, 'echo out; echo err >&2; exit 7');
  expect(failing.exitCode).toBe(7);
  expect(failing.output).toContain('out');
  expect(failing.output).toContain('err');

  const [up, down] = [join(files, 'up'), join(files, 'down')];
  await writeFile(up, 'content');
  await ok('sandbox', 'cp', up, `${id}:/tmp/`);
  await ok('sandbox', 'cp', `${id}:/tmp/up`, down);
  expect(await readFile(down, 'utf8')).toBe('content');
  await writeFile(down, 'old');
  const link = join(files, 'link');
  await symlink('down', link);
  await ok('sandbox', 'cp', `${id}:/tmp/up`, link);
  expect(await readlink(link)).toBe('down');
  expect(await readFile(down, 'utf8')).toBe('content');

  expect(await ok('sandbox', 'list')).toContain(id);
  expect(await ok('sandbox', 'open', id, '8080', '--for', '5m')).toMatch(/\/ports\/8080\/~\S+\/$/);
  await ok('sandbox', 'pause', id);
  expect(JSON.parse(await ok('sandbox', 'get', id))).toMatchObject({ state: 'paused' });
  await ok('sandbox', 'resume', id);
  await ok('sandbox', 'rm', id);
  expect(JSON.parse(await ok('sandbox', 'get', id))).toMatchObject({ state: 'destroyed' });
});

test('a failed command prints the error code and exits with a failure', async () => {
  const { exitCode, output } = await svc(
    'sandbox',
    'exec',
    'vm_01a1fe515af17b63b66c37e535320d10',
    'true',
  );
  expect(exitCode).not.toBe(0);
  expect(output).toContain('sandbox_not_found');
});

test('down ends the service, and succeeds when none is running', async () => {
  await ok('down');
  const { exitCode, output } = await svc('status', '--json');
  expect(exitCode).toBe(3);
  expect(JSON.parse(output)).toMatchObject({ state: 'stopped', base_url: null });
  await ok('down');
});
