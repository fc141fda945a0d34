import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../test/test-postgres.ts';
import { connect } from '../connect.ts';
import { REQUEST_DEADLINES } from '../pool.ts';
import { openStore, type Store } from '../store.ts';

let postgres: TestPostgres;
let store: Store;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({
    url: postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 10 },
  });
});
afterAll(async () => {
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

const token = (seconds = 60) => ({
  tokenId: randomUUID(),
  uses: 1,
  expiresAt: new Date(Date.now() + seconds * 1000),
  isForId: false,
});
const component = (componentId: string, changes: object = {}) =>
  ({
    ...{ componentId, kind: 'runtime', keyId: 'k', publicKey: 'x', token: token() },
    ...changes,
  }) as Parameters<Store['components']['enrol']>[0];

test('a use is noted by the hour, and a component without one is removed in time', async () => {
  const { components } = store;
  for (const id of ['used', 'unused'])
    expect(await components.enrol(component(id))).toBeUndefined();
  const db = connect(postgres.url, REQUEST_DEADLINES);
  await db
    .updateTable('components')
    .set({ used_at: new Date(Date.now() - 2 * 3_600_000) })
    .execute();
  expect(await components.keyOf('used')).toEqual({ kind: 'runtime', keyId: 'k', publicKey: 'x' });
  expect(await components.removeUnused(3_600, 10)).toBe(1);
  const left = await components.list('runtime');
  expect(left.map(({ component_id }) => component_id)).toEqual(['used']);
  await db.destroy();
});

test('a used token is kept until it expires, so that nobody uses it again', async () => {
  const { components } = store;
  const [old, fresh] = [token(-60), token()];
  await components.enrol(component('a', { token: old }));
  await components.enrol(component('b', { token: fresh }));
  await components.removeExpiredTokens(0, 10);
  expect(await components.enrol(component('c', { token: fresh }))).toBe('token_used');
});
