import { loadConfig } from '@svc/config';
import { openStore, type Store } from '@svc/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { MasterKeyring } from './master-keyring.ts';
import { rotateMasterKey } from './rotate-master-key.ts';
import { TenantKeys } from './tenant-keys.ts';

let harness: Harness;
let store: Store;

beforeAll(async () => {
  harness = await Harness.start();
  store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 1, sandboxesPerTenant: 1 },
  });
});
afterAll(async () => {
  await store?.close();
  await harness?.[Symbol.asyncDispose]();
});

const keyring = () => MasterKeyring.open(loadConfig({ SVC_DATA_DIR: harness.dataDir }));
const keys = async () => new TenantKeys(store, await keyring());

test('derived keys differ by tenant and purpose, and survive a rotation of the master key', async () => {
  const [one, two] = [(await harness.signUp()).tenantId, (await harness.signUp()).tenantId];
  const derived = async () => {
    const own = await keys();
    return Promise.all([own.derive(one, 'a'), own.derive(one, 'b'), own.derive(two, 'a')]);
  };
  const before = await derived();
  expect(new Set(before.map((key) => key.toString('hex'))).size).toBe(3);
  const { rows } = await harness.sql.query('select master_key_id from tenant_keys');
  expect(rows).toHaveLength(2);
  const rotation = await rotateMasterKey(store, await keyring());
  expect(rotation).toMatchObject({ rewrapped: 2, changed: true });
  expect(await derived()).toEqual(before);
  const after = await harness.sql.query('select master_key_id from tenant_keys');
  expect(after.rows).toEqual([
    { master_key_id: rotation.keyId },
    { master_key_id: rotation.keyId },
  ]);
});

test('a key that was changed, or belongs to another tenant, does not open', async () => {
  const [one, two] = [(await harness.signUp()).tenantId, (await harness.signUp()).tenantId];
  const own = await keys();
  await own.derive(one, 'a');
  await own.derive(two, 'a');
  await harness.sql.query(
    `update tenant_keys set wrapped_key = (select wrapped_key from tenant_keys where tenant_id = $1)
     where tenant_id = $2`,
    [one, two],
  );
  await expect(own.derive(two, 'a')).rejects.toThrow();
  await harness.sql.query(
    `update tenant_keys set wrapped_key = set_byte(wrapped_key, 20, get_byte(wrapped_key, 20) # 1)
     where tenant_id = $1`,
    [one],
  );
  await expect(own.derive(one, 'a')).rejects.toThrow();
});
