import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { type ControlPlane, startControlPlane } from '@svc/control-plane';
import { SvcClient } from '@svc/sdk';
import { createLogger, lockFile, Secret } from '@svc/service-kit';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { commandLine } from '../../test/run-svc.ts';
import { servicePaths } from '../service/paths.ts';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 120_000 });

const EMAIL = 'ada@example.com';

let dataDir: string;
let plane: ControlPlane | undefined;
let svc: ReturnType<typeof commandLine>;

async function startPlane(): Promise<ControlPlane> {
  return startControlPlane({
    config: loadConfig({ SVC_DATA_DIR: dataDir, SVC_TLS: 'off', SVC_LISTEN: '127.0.0.1:0' }),
    logger: createLogger({ level: 'silent' }),
    clusterSecret: new Secret('a-secret-of-at-least-32-characters-for-tests'),
  });
}

async function signUp(baseUrl: string): Promise<string> {
  await using client = new SvcClient({ baseUrl });
  await client.tenants.requestCode(EMAIL);
  const outbox = join(dataDir, 'outbox');
  const [mail = ''] = await readdir(outbox);
  const code = /^Subject: (\d{6}) /m.exec(await readFile(join(outbox, mail), 'utf8'))?.[1] ?? '';
  return (await client.tenants.verify(EMAIL, code)).api_key;
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'svc-cli-account-'));
  plane = await startPlane();
  svc = commandLine({
    HOME: dataDir,
    SVC_DATA_DIR: dataDir,
    SVC_BASE_URL: plane.url,
    SVC_API_KEY: await signUp(plane.url),
  });
});

afterAll(async () => {
  await plane?.close();
  await rm(dataDir, { recursive: true, force: true });
});

describe('svc keys', () => {
  test('creates a key, printing nothing else to standard output, lists it and revokes it', async () => {
    const made = await svc(['keys', 'create', 'laptop']);
    expect(made.code, made.errors).toBe(0);
    expect(made.output).toMatch(/^svc_[0-9a-f]{64}\n$/);
    const id = /key_[0-9a-f]{32}/.exec(made.errors)?.[0] ?? '';
    const list = await svc(['keys', 'list']);
    expect(list.output).toMatch(new RegExp(`${id}\\s+svc_\\S+\\s+laptop\\s+active\\s.+\\snever`));
    expect(list.output).not.toContain(made.output.trim());
    expect((await svc(['keys', 'revoke', id])).output).toBe(`${id} revoked\n`);
    expect((await svc(['keys', 'list', '--json'])).output).toContain('"revoked":true');
    const unknown = await svc(['keys', 'revoke', 'key_nope']);
    expect(unknown).toMatchObject({
      code: 1,
      errors: expect.stringContaining('api_key_not_found'),
    });
  });
});

describe('svc secrets', () => {
  test('creates a bundle from lines, rotates it from a file and from one value, lists and deletes it', async () => {
    const lines = 'LLM_API_KEY="canary one"\n# a comment\nLLM_MODEL=canary-two\n';
    const set = await svc(['secrets', 'set', 'models'], lines);
    expect(set).toMatchObject({ code: 0, output: 'models set: LLM_API_KEY, LLM_MODEL\n' });
    const file = join(dataDir, 'values.json');
    await writeFile(file, '{"A": "canary\\nthree", "B": ""}');
    const rotated = await svc(['secrets', 'rotate', 'models', '--file', file]);
    expect(rotated.output).toBe('models rotated: A, B\n');
    const one = await svc(['secrets', 'rotate', 'models', '--key', 'LLM_API_KEY'], 'canary\n');
    expect(one.output).toBe('models rotated: LLM_API_KEY\n');
    const list = await svc(['secrets', 'list']);
    expect(list.output).toMatch(/models\s+LLM_API_KEY\s.+ ago/);
    const again = await svc(['secrets', 'set', 'models'], lines);
    expect(again).toMatchObject({ code: 1, errors: expect.stringContaining('bundle_exists') });
    for (const { output, errors } of [set, rotated, one, list, again])
      expect(output + errors).not.toContain('canary');
    expect((await svc(['secrets', 'rm', 'models'])).output).toBe('models deleted\n');
  });

  test.each([
    ['', 'no_values'],
    ['nonsense', 'no_values'],
    ['{"A": 1, "B": "canary"}', 'values_invalid'],
    ['{"A": "canary"', 'values_invalid'],
  ])('rejects the input %j without showing it', async (input, code) => {
    const answer = await svc(['secrets', 'set', 'bad'], input);
    expect(answer).toMatchObject({ code: 1, errors: expect.stringContaining(code) });
    expect(answer.errors).not.toContain('canary');
  });
});

describe('svc secrets rotate-master-key', () => {
  const keyFile = () => readFile(join(dataDir, 'keys', 'master-key'), 'utf8');

  test('rotates the key while the service keeps running', async () => {
    const lock = await lockFile(servicePaths(dataDir).lock);
    try {
      expect((await svc(['secrets', 'set', 'kept'], 'A=1\n')).code).toBe(0);
      const before = await keyFile();
      const rotation = await svc(['secrets', 'rotate-master-key']);
      expect(rotation.code, rotation.errors).toBe(0);
      expect(rotation.errors).toMatch(/(\d) of \1 bundles/);
      expect(rotation.output).toMatch(/^master key [0-9a-f]{16} is in use; [1-9]/);
      expect(await keyFile()).not.toBe(before);
      expect((await stat(join(dataDir, 'keys', 'master-key'))).mode & 0o777).toBe(0o600);
      expect((await svc(['secrets', 'rotate', 'kept'], 'A=2\n')).code).toBe(0);
    } finally {
      await lock.release();
    }
  });

  test('rotates the key while no service is running, and leaves no database running', async () => {
    await plane?.close();
    plane = undefined;
    const rotation = await svc(['secrets', 'rotate-master-key']);
    expect(rotation.code, rotation.errors).toBe(0);
    await expect(readFile(join(dataDir, 'postgres', 'postmaster.pid'))).rejects.toThrow('ENOENT');
    plane = await startPlane();
  });

  test('fails without creating a database in an empty data directory', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'svc-cli-empty-'));
    const elsewhere = commandLine({ HOME: empty, SVC_DATA_DIR: empty });
    const answer = await elsewhere(['secrets', 'rotate-master-key']);
    expect(answer).toMatchObject({ code: 1, errors: expect.stringContaining('no_database') });
    expect(await readdir(empty)).toEqual([]);
    await rm(empty, { recursive: true });
  });
});
