import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { ClusterSecrets, type ControlPlane, startControlPlane } from '@svc/control-plane';
import { SvcClient } from '@svc/sdk';
import { createLogger, lockFile, Secret } from '@svc/service-kit';
import { EmbeddedPostgres } from '@svc/store';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { commandLine } from '../../test/run-svc.ts';
import { servicePaths } from '../service/paths.ts';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 120_000 });

const EMAIL = 'ada@example.com';

let dataDir: string;
let plane: ControlPlane | undefined;
let tenantId: string;
let svc: ReturnType<typeof commandLine>;

async function startPlane(): Promise<ControlPlane> {
  return startControlPlane({
    config: loadConfig({ SVC_DATA_DIR: dataDir, SVC_TLS: 'off', SVC_LISTEN: '127.0.0.1:0' }),
    logger: createLogger({ level: 'silent' }),
    clusterSecrets: await ClusterSecrets.open([
      new Secret('a-secret-of-at-least-32-characters-for-tests'),
    ]),
  });
}

async function signUp(baseUrl: string) {
  await using client = new SvcClient({ baseUrl });
  await client.tenants.requestCode(EMAIL);
  const outbox = join(dataDir, 'outbox');
  const [mail = ''] = await readdir(outbox);
  const code = /^Subject: (\d{6}) /m.exec(await readFile(join(outbox, mail), 'utf8'))?.[1] ?? '';
  return client.tenants.verify(EMAIL, code);
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'svc-cli-account-'));
  plane = await startPlane();
  const account = await signUp(plane.url);
  tenantId = account.tenant_id;
  svc = commandLine({
    HOME: dataDir,
    SVC_DATA_DIR: dataDir,
    SVC_BASE_URL: plane.url,
    SVC_API_KEY: account.api_key,
    SVC_ACCOUNT_TOKEN: account.token,
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

describe('svc billing', () => {
  test('shows the credit, buys more and sets top-ups, as text and as JSON', async () => {
    expect(await svc(['billing', 'balance'])).toMatchObject({ code: 0, output: '$5.00\n' });
    expect((await svc(['billing', 'balance', '--json'])).output).toBe('{"credit_balance":500}\n');
    const list = await svc(['billing', 'transactions', '--limit', '5']);
    expect(list.output).toMatch(/^ID +TIME +AMOUNT +DESCRIPTION\ntxn_\S+ +\S+Z +\$5\.00 +Credit/);
    const { output: url } = await svc(['billing', 'topup', '7.50']);
    expect(url).toMatch(/^http:\/\/localhost:\d+\/billing\/checkout\?token=[\w-]+\n$/);
    expect((await svc(['billing', 'auto-topup'])).output).toBe('off\n');
    const set = await svc(['billing', 'auto-topup', '--below', '2', '--amount', '10']);
    expect(set.output).toBe('charges $10.00 when the credit is below $2.00\n');
    expect(JSON.parse((await svc(['billing', 'auto-topup', '--off', '--json'])).output)).toEqual({
      enabled: false,
      threshold_amount: 200,
      topup_amount: 1000,
    });
  });

  test('verifies the database of a running service, and fails where it differs', async () => {
    const lock = await lockFile(servicePaths(dataDir).lock);
    const sql = new pg.Client({ connectionString: await EmbeddedPostgres.runningUrl(dataDir) });
    try {
      const whole = await svc(['billing', 'verify']);
      expect(whole, whole.errors).toMatchObject({ code: 0, errors: '' });
      expect(whole.output).toMatch(/^(ok {4}.+\n){13}$/);
      await sql.connect();
      await sql.query('update billing_accounts set balance_cents = balance_cents + 1');
      const broken = await svc(['billing', 'verify']);
      expect(broken.code).toBe(1);
      expect(broken.errors).toContain('billing_differs');
      expect(broken.output).toMatch(
        /FAIL {2}every balance is the sum of its entries\nSUBJECT.+\nusr_\w+ +501 +500\n/,
      );
      expect(JSON.parse((await svc(['billing', 'verify', '--json'])).output)).toHaveLength(13);
      await sql.query('update billing_accounts set balance_cents = balance_cents - 1');
    } finally {
      await sql.end();
      await lock.release();
    }
  });

  test('adjusts the credit of an account, once for a reference', async () => {
    const lock = await lockFile(servicePaths(dataDir).lock);
    try {
      const adjust = (account: string, cents: string) =>
        svc(['billing', 'adjust', account, cents, '--reason', 'refund', '--reference', 're_1']);
      const before = JSON.parse((await svc(['billing', 'balance', '--json'])).output);
      const first = await adjust(tenantId, '-120');
      expect(first, first.errors).toMatchObject({ code: 0, output: 'added\n' });
      expect(await adjust(tenantId, '-120')).toMatchObject({
        code: 0,
        output: expect.stringContaining('unchanged'),
      });
      const after = JSON.parse((await svc(['billing', 'balance', '--json'])).output);
      expect(after.credit_balance).toBe(before.credit_balance - 120);
      expect((await svc(['billing', 'transactions'])).output).toMatch(/-\$1\.20 +refund/);
      expect((await adjust('usr_none', '5')).errors).toContain('account_not_found');
      expect((await adjust(tenantId, '0.5')).code).not.toBe(0);
    } finally {
      await lock.release();
    }
  });
});

describe('svc usage', () => {
  test('shows the month and each day, as a table and as JSON', async () => {
    const shown = await svc(['usage', '--from', '2026-01-30', '--to', '2026-02-02']);
    expect(shown.code, shown.errors).toBe(0);
    expect(shown.output).toMatch(/^period\s+\d{4}-\d{2}-01\.\.\d{4}-\d{2}-01\n/);
    expect(shown.output).toMatch(
      /2026-01-30\s+0\.0\s+0\s+0\s+\$0\.00\n2026-01-31 .*\n2026-02-01 .*\n$/,
    );
    const { entries, period } = JSON.parse((await svc(['usage', '--json'])).output);
    expect(period).toMatch(/\.\./);
    expect(entries).toHaveLength(31);
    expect(await svc(['usage', '--from', '2026-02-30'])).toMatchObject({
      code: 1,
      errors: expect.stringContaining('not a date'),
    });
  });
});

describe('svc workspace', () => {
  test('uploads, lists, downloads and deletes a file', async () => {
    const file = join(dataDir, 'may.csv');
    const content = 'a,b\n'.repeat(100_000);
    await writeFile(file, content);
    const put = await svc(['workspace', 'put', file, 'my-app/default:reports/']);
    expect(put, put.errors).toMatchObject({ code: 0, output: 'reports/may.csv\n', errors: '' });
    const workspaces = await svc(['workspace', 'ls']);
    expect(workspaces.output).toMatch(/my-app\/default\s+390.6 KiB/);
    const files = await svc(['workspace', 'ls', 'my-app/default:rep', '--json']);
    expect(JSON.parse(files.output)).toMatchObject([{ path: 'reports/may.csv', size: 400_000 }]);
    const target = join(dataDir, 'copy.csv');
    const name = 'my-app/default:reports/may.csv';
    const got = await svc(['workspace', 'get', name, target, '--json']);
    expect(JSON.parse(got.output)).toEqual({ path: target, size: 400_000 });
    expect(await readFile(target, 'utf8')).toBe(content);
    expect((await svc(['workspace', 'get', name, '-'])).output).toBe(content);
    expect((await svc(['workspace', 'rm', name])).output).toBe(`${name} deleted\n`);
    const again = await svc(['workspace', 'rm', name]);
    expect(again.errors).toContain('workspace_file_not_found');
    const none = await svc(['workspace', 'rm', 'my-app/default']);
    expect(none).toMatchObject({ code: 1, errors: expect.stringContaining('not_one_target') });
    const all = await svc(['workspace', 'rm', 'my-app/default', '--all']);
    expect(all.errors).toContain('workspace_not_found');
  });

  test('synchronises a directory in both directions, and copies only what differs', async () => {
    const [local, copy] = [join(dataDir, 'reports'), join(dataDir, 'copy')];
    const workspace = 'my-app/synced:reports';
    const sync = async (...args: string[]) => {
      const { output, errors, code } = await svc(['workspace', 'sync', ...args, '--json']);
      expect(code, errors).toBe(0);
      return JSON.parse(output);
    };
    await mkdir(join(local, 'deep/er'), { recursive: true });
    await writeFile(join(local, 'a'), 'one');
    await writeFile(join(local, 'empty'), '');
    await writeFile(join(local, 'deep/er/b ü'), 'two');
    await symlink('/etc/passwd', join(local, 'link'));

    const planned = await sync(local, workspace, '--dry-run');
    expect(planned).toMatchObject({ copied: ['a', 'deep/er/b ü', 'empty'], bytes: 6 });
    expect(await sync(local, workspace)).toEqual({ ...planned, deleted: [], skipped: ['link'] });
    expect(await sync(local, workspace)).toMatchObject({ copied: [], unchanged: 3 });

    expect(await sync(copy, workspace, '--pull')).toMatchObject({ copied: planned.copied });
    expect(await sync(copy, workspace, '--pull')).toMatchObject({ copied: [], unchanged: 3 });
    expect(await sync(copy, workspace)).toMatchObject({ copied: [], unchanged: 3 });
    expect(await readFile(join(copy, 'deep/er/b ü'), 'utf8')).toBe('two');

    await writeFile(join(local, 'a'), 'longer');
    await rm(join(local, 'deep'), { recursive: true });
    expect(await sync(local, workspace)).toMatchObject({ copied: ['a'], deleted: [] });
    expect(await sync(local, workspace, '--delete')).toMatchObject({
      copied: [],
      deleted: ['deep/er/b ü'],
    });
    await symlink(dataDir, join(copy, 'kept'));
    expect(await sync(copy, workspace, '--pull', '--delete')).toMatchObject({
      copied: ['a'],
      deleted: ['deep/er/b ü'],
    });
    expect((await readdir(copy)).sort()).toEqual(['a', 'empty', 'kept']);

    const none = await svc(['workspace', 'sync', copy, 'my-app/none', '--pull', '--delete']);
    expect(none).toMatchObject({ code: 1, errors: expect.stringContaining('nothing_to_sync') });
    const shown = await svc(['workspace', 'sync', local, workspace]);
    expect(shown.output).toBe(
      'skipped link, which is not a regular file\n0 uploaded (0 B), 0 deleted, 2 unchanged\n',
    );
  });

  test('asks for a sign-in if there is only an API key', async () => {
    const url = plane?.url ?? '';
    const withoutToken = commandLine({ HOME: dataDir, SVC_BASE_URL: url, SVC_API_KEY: 'svc_x' });
    const answer = await withoutToken(['workspace', 'ls']);
    expect(answer).toMatchObject({ code: 1, errors: expect.stringContaining('not_signed_in') });
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
