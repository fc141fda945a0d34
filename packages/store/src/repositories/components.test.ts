import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
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
  expect(await components.removeExpiredTokens(0, 10)).toBe(1);
  expect(await components.enrol(component('c', { token: fresh }))).toBe('token_used');
});

test('an enrolment can be repeated, without another use of its token, until the component is revoked', async () => {
  const { components } = store;
  const once = component('repeated', { token: token() });
  for (let time = 0; time < 2; time += 1) expect(await components.enrol(once)).toBeUndefined();
  for (const changes of [{ keyId: 'other' }, { kind: 'worker' }]) {
    const changed = component('repeated', { token: once.token, ...changes });
    expect(await components.enrol(changed)).toBe('token_used');
  }
  expect(await components.revoke('repeated', 'runtime')).toBe(true);
  expect(await components.enrol(once)).toBe('token_used');
});

test('an id in use is refused with a token that is not for it, and the token is not used up', async () => {
  const { components } = store;
  await components.enrol(component('taken'));
  const fresh = token();
  const thief = component('taken', { keyId: 'k2', token: fresh });
  expect(await components.enrol(thief)).toBe('id_in_use');
  expect(await components.keyOf('taken')).toMatchObject({ keyId: 'k' });
  expect(await components.enrol(component('free', { token: fresh }))).toBeUndefined();
  const forIt = component('taken', { keyId: 'k2', token: { ...token(), isForId: true } });
  expect(await components.enrol(forIt)).toBeUndefined();
  expect(await components.keyOf('taken')).toMatchObject({ keyId: 'k2' });
});

test('a failure of the database is no refusal', async () => {
  const broken = component('broken', { keyId: null });
  await expect(store.components.enrol(broken)).rejects.toThrow(/null value in column "key_id"/);
});

test('only the component of this id and kind is revoked, once, and a worker leaves the fleet', async () => {
  const { components } = store;
  for (const id of ['left', 'right']) await components.enrol(component(id, { kind: 'worker' }));
  const db = connect(postgres.url, REQUEST_DEADLINES);
  await sql`insert into workers (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib, templates)
    select id, 'https://' || id, '', '1', 1, 1, 1, '[]' from unnest(array['left', 'right']) id`.execute(
    db,
  );
  const removed = async () =>
    (
      await sql<{
        worker_id: string;
      }>`select worker_id from workers where removed_at is not null`.execute(db)
    ).rows;
  expect(await components.revoke('left', 'runtime')).toBe(false);
  expect(await components.revoke('nobody', 'worker')).toBe(false);
  expect(await components.keyOf('left')).toBeDefined();
  expect(await removed()).toEqual([]);
  expect(await components.revoke('left', 'worker')).toBe(true);
  expect(await components.revoke('left', 'worker')).toBe(false);
  expect(await components.keyOf('left')).toBeUndefined();
  expect(await components.keyOf('right')).toBeDefined();
  expect(await removed()).toEqual([{ worker_id: 'left' }]);
  const listed = await components.list('worker');
  expect(listed.map(({ component_id: id, revoked_at: at }) => [id, at !== null])).toEqual([
    ['left', true],
    ['right', false],
  ]);
  // A runtime host with the id of a worker takes no worker away.
  await components.enrol(component('right', { token: { ...token(), isForId: true } }));
  expect(await components.revoke('right', 'runtime')).toBe(true);
  expect(await removed()).toEqual([{ worker_id: 'left' }]);
  await db.destroy();
});
