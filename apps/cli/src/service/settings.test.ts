import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandLine, type Outcome } from '../../test/run-svc.ts';

let directory: string;
let run: (args: readonly string[]) => Promise<Outcome>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-settings-'));
  run = commandLine({
    HOME: directory,
    SVC_DATA_DIR: join(directory, 'data'),
    SVC_API_KEY: 'svc_live_key',
    SVC_LISTN: 'localhost:0',
    SVC_S3_BUCKETS: 'bucket',
    SVC_BILLING: 'on',
  });
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

test.each([
  [['up']],
  [['up', '--detach']],
  [['control-plane']],
  [['runtime']],
  [['worker']],
  [['secrets', 'rotate-master-key']],
])('svc %j refuses settings that nothing reads, all at once', async (args) => {
  const { code, errors } = await run(args);
  expect(errors).toContain('SVC_LISTN is not a setting; did you mean SVC_LISTEN?');
  expect(errors).toContain('SVC_S3_BUCKETS is not a setting');
  expect(errors).toContain('SVC_BILLING is not a setting');
  expect(errors).not.toContain('SVC_API_KEY');
  expect(errors).toContain('invalid_configuration');
  expect(code).toBe(1);
  expect(await readdir(directory)).toEqual([]);
});

test('svc doctor reports them as problems', async () => {
  const { code, output } = await run(['doctor']);
  expect(code).toBe(1);
  expect(output).toMatch(/fail +settings +SVC_LISTN is not a setting/);
  expect(output).toMatch(/fail +settings +SVC_S3_BUCKETS/);
});

test.each([
  [['status'], 3, ''],
  [['down'], 0, ''],
  [['image', 'list'], 0, ''],
  [['sandbox', 'list'], 1, 'no_service_known'],
])('svc %j works with them', async (args, code, error) => {
  const outcome = await run(args);
  expect(outcome.code, outcome.errors).toBe(code);
  expect(outcome.errors).toContain(error);
  expect(outcome.errors).not.toContain('invalid_configuration');
});
