import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { EgressPolicy } from '@svc/egress';
import { createLogger } from '@svc/service-kit';
import { openStore, type Store } from '@svc/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import { MasterKeyring } from './master-keyring.ts';
import { rotateMasterKey } from './rotate-master-key.ts';
import { SecretBundles } from './secret-bundles.ts';

const KEYS = ['1'.repeat(64), '2'.repeat(64)];
const PATH = '/v1/tenants/me/secrets';

let harness: Harness;
let store: Store;
let account: Awaited<ReturnType<Harness['signUp']>>;

async function start(environment: Record<string, string> = {}): Promise<void> {
  harness = await Harness.start(environment);
  store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 1, sandboxesPerTenant: 1 },
  });
  account = await harness.signUp();
}

beforeEach(() => start());
afterEach(async () => {
  await store.close();
  await harness[Symbol.asyncDispose]();
});

const keyring = (environment: Record<string, string> = {}) =>
  MasterKeyring.open(loadConfig({ SVC_DATA_DIR: harness.dataDir, ...environment }));
const bundles = async (environment: Record<string, string> = {}) =>
  new SecretBundles({
    store,
    keyring: await keyring(environment),
    egress: new EgressPolicy([]),
    audit: new AuditTrail(store.audit, createLogger({ level: 'silent' })),
  });
const write = (name: string, value: string) =>
  harness.call('POST', PATH, { key: account.key, json: { name, values: { A: value } } });
const read = async (name: string, environment: Record<string, string> = {}) => {
  const revealed = await (await bundles(environment)).reveal(account.tenantId, [name]);
  return revealed.get(name)?.A?.reveal();
};
const masterKeyIds = async () =>
  (await harness.sql.query('select distinct master_key_id from secret_bundles')).rows.map(
    (row) => row.master_key_id,
  );
const fileLines = async () =>
  (await readFile(join(harness.dataDir, 'keys', 'master-key'), 'utf8')).trim().split('\n');

describe('stored bundles', () => {
  test('decrypt again, and cannot be printed by accident', async () => {
    await write('a', 'one');
    await write('b', 'two');
    const revealed = await (await bundles()).reveal(account.tenantId, ['a', 'b', 'none']);
    expect([...revealed.keys()].sort()).toEqual(['a', 'b']);
    expect(revealed.get('a')?.A?.reveal()).toBe('one');
    expect(JSON.stringify([...revealed])).not.toContain('one');
  });

  test.each([
    [
      'values',
      'update secret_bundles set sealed_values = set_byte(sealed_values, 20, get_byte(sealed_values, 20) # 1)',
    ],
    [
      'key',
      'update secret_bundles set wrapped_key = set_byte(wrapped_key, 20, get_byte(wrapped_key, 20) # 1)',
    ],
    ['cut', 'update secret_bundles set sealed_values = substring(sealed_values for 8)'],
    ['name', "update secret_bundles set name = 'a' || name"],
  ])('do not open once their %s was changed', async (_, change) => {
    await write('a', 'one');
    await write('b', 'two');
    await harness.sql.query("delete from secret_bundles where name = 'b'");
    await harness.sql.query(change);
    const reveal = (await bundles()).reveal(account.tenantId, ['a', 'aa']);
    await expect(reveal).rejects.toThrow();
  });

  test('do not decrypt for another tenant', async () => {
    await write('a', 'one');
    const other = await harness.signUp();
    await harness.sql.query('update secret_bundles set tenant_id = $1', [other.tenantId]);
    await expect((await bundles()).reveal(other.tenantId, ['a'])).rejects.toThrow();
  });

  test('two bundles with equal values share no byte pattern', async () => {
    await write('a', 'one');
    await write('b', 'one');
    const { rows } = await harness.sql.query(
      'select sealed_values, wrapped_key from secret_bundles',
    );
    expect(rows[0].sealed_values.equals(rows[1].sealed_values)).toBe(false);
    expect(rows[0].wrapped_key.equals(rows[1].wrapped_key)).toBe(false);
  });
});

describe('the master key', () => {
  test('is created at the first start, readable only by its owner', async () => {
    const { mode } = await stat(join(harness.dataDir, 'keys', 'master-key'));
    expect(mode & 0o777).toBe(0o600);
    expect(await fileLines()).toHaveLength(1);
  });

  test('prevents a start while it is missing, and is not replaced', async () => {
    await write('a', 'one');
    await rm(join(harness.dataDir, 'keys', 'master-key'));
    await expect(harness.startAnother()).rejects.toThrow(/wrapped with master key/);
    await expect(harness.startAnother({ SVC_MASTER_KEY: KEYS[0] ?? '' })).rejects.toThrow(
      /SVC_MASTER_KEY/,
    );
    await expect(stat(join(harness.dataDir, 'keys', 'master-key'))).rejects.toThrow('ENOENT');
  });

  test('rotates while control planes serve, after which the old key is useless', async () => {
    for (const name of ['a', 'b', 'c']) await write(name, `value of ${name}`);
    const [oldKey] = await fileLines();
    const before = await masterKeyIds();
    const progress: number[] = [];
    const rotation = await rotateMasterKey(store, await keyring(), ({ done, total }) => {
      progress.push(done / total);
    });
    expect(rotation).toMatchObject({ rewrapped: 3, changed: true });
    expect(progress.at(-1)).toBe(1);
    expect(await masterKeyIds()).toEqual([rotation.keyId]);
    expect(before).not.toContain(rotation.keyId);
    expect(await fileLines()).toHaveLength(1);
    expect(await fileLines()).not.toContain(oldKey);
    expect(await read('b')).toBe('value of b');
    // A running control plane learns the new key at its next write.
    expect((await write('d', 'value of d')).status).toBe(201);
    expect(await masterKeyIds()).toEqual([rotation.keyId]);
    expect(await read('d')).toBe('value of d');
  });

  test('rotates repeatedly, each time to another key', async () => {
    await write('a', 'one');
    const ids = new Set<string>();
    for (let turn = 0; turn < 3; turn += 1)
      ids.add((await rotateMasterKey(store, await keyring())).keyId);
    expect(ids.size).toBe(3);
    expect(await read('a')).toBe('one');
  });

  test('an interrupted rotation is completed by the next one, with the same key', async () => {
    for (let index = 0; index < 49; index += 1) await write(`b${index}`, `value ${index}`);
    const ring = await keyring();
    const target = await ring.create();
    await store.masterKeys.makeCurrent(target.id);
    await store.secretBundles
      .rewrap(target.id, 7, () => {
        throw new Error('cut short');
      })
      .catch(() => undefined);
    await expect(read('b7')).resolves.toBe('value 7');
    expect((await write('more', 'new')).status).toBe(201);
    const rotation = await rotateMasterKey(store, await keyring());
    expect(rotation).toEqual({ keyId: target.id, rewrapped: 49, changed: true });
    expect(await masterKeyIds()).toEqual([target.id]);
    expect(await read('b48')).toBe('value 48');
    expect(await fileLines()).toHaveLength(1);
  });

  test('moves from the file to the environment, and to a newer key there', async () => {
    await write('a', 'one');
    const [first = '', second = ''] = KEYS;
    const toEnvironment = { SVC_MASTER_KEY: first };
    expect(await rotateMasterKey(store, await keyring(toEnvironment))).toMatchObject({
      rewrapped: 1,
    });
    await rm(join(harness.dataDir, 'keys', 'master-key'));
    expect(await read('a', toEnvironment)).toBe('one');
    const both = { SVC_MASTER_KEY: second, SVC_MASTER_KEY_PREVIOUS: first };
    const plane = await harness.startAnother(both);
    await plane.close();
    expect(await rotateMasterKey(store, await keyring(both))).toMatchObject({ rewrapped: 1 });
    expect(await rotateMasterKey(store, await keyring(both))).toMatchObject({ changed: false });
    expect(await read('a', { SVC_MASTER_KEY: second })).toBe('one');
  });

  test("moves to the newest key of the operator's file, without a restart or a change of the file", async () => {
    const [first = '', second = ''] = KEYS;
    const file = join(harness.dataDir, 'keys-of-the-operator');
    const theirs = { SVC_MASTER_KEY_FILE: file };
    const start = () => harness.startAnother(theirs);
    await expect(start()).rejects.toThrow(/cannot be read: ENOENT/);
    await writeFile(file, `${first}\nshort`);
    await expect(start()).rejects.toThrow(/line 2 of .* is no master key/);
    await writeFile(file, first);
    await expect(start()).rejects.toThrow(/stored secrets are wrapped/);
    await harness.sql.query('delete from master_keys');
    await writeFile(file, '\n');
    await expect(start()).rejects.toThrow(/no master key in SVC_MASTER_KEY_FILE/);
    await writeFile(file, `${first}\n`);
    const plane = await start();
    await using cleanUp = new AsyncDisposableStack();
    cleanUp.defer(() => plane.close());
    const writeThere = (name: string, value: string) =>
      harness.call('POST', PATH, {
        key: account.key,
        json: { name, values: { A: value } },
        plane,
      });
    expect((await writeThere('a', 'one')).status).toBe(201);
    const [before] = await masterKeyIds();

    const both = `${Buffer.from(second, 'hex').toString('base64')}\n${first}\n`;
    await writeFile(file, both);
    expect((await writeThere('b', 'two')).status).toBe(201);
    expect(await masterKeyIds()).toEqual([before]);
    const rotation = await rotateMasterKey(store, await keyring(theirs));
    expect(rotation).toMatchObject({ rewrapped: 2, changed: true });
    expect(await readFile(file, 'utf8')).toBe(both);
    expect(await rotateMasterKey(store, await keyring(theirs))).toMatchObject({ changed: false });
    expect((await writeThere('c', 'three')).status).toBe(201);
    expect(await masterKeyIds()).toEqual([rotation.keyId]);

    // A file that is away or broken for a moment takes no key away.
    await rm(file);
    expect((await writeThere('d', 'four')).status).toBe(201);
    await writeFile(file, `${second}\n`);
    for (const [name, value] of Object.entries({ a: 'one', b: 'two', c: 'three', d: 'four' })) {
      expect(await read(name, theirs)).toBe(value);
    }
  });

  test('no data key is wrapped with an outdated master key, even in a race', async () => {
    const writing = Array.from({ length: 30 }, (_, index) => write(`r${index}`, `v${index}`));
    const rotation = await rotateMasterKey(store, await keyring());
    const answers = await Promise.all(writing);
    expect(answers.filter((answer) => answer.status !== 201)).toEqual([]);
    await rotateMasterKey(store, await keyring()).then(({ keyId }) => {
      expect(keyId).not.toBe(rotation.keyId);
    });
    expect(await masterKeyIds()).toHaveLength(1);
    for (const index of [0, 15, 29]) expect(await read(`r${index}`)).toBe(`v${index}`);
  });
});
