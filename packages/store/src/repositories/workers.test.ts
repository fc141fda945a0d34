import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../test/test-postgres.ts';
import { connect } from '../connect.ts';
import { REQUEST_DEADLINES } from '../pool.ts';
import { openStore, type Store } from '../store.ts';
import { FleetRepository } from './fleet.ts';

const TIMES = { unreachableMs: 30_000, lostMs: 300_000 };
const TENANT = 'usr_1';

let postgres: TestPostgres;
let store: Store;
let client: pg.Client;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({
    url: postgres.url,
    placement: { unreachableMs: TIMES.unreachableMs, sandboxesPerTenant: 50 },
  });
  client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await client.query('truncate workers, sandboxes cascade');
  await client.query('update tenants set active_sandboxes = 0');
  await store.tenants.findOrCreate('ada@example.com', TENANT);
});

const REPORT = {
  capacity: { vcpu: 2, memory_mib: 4096, disk_mib: 10_000 },
  templates: [{ template: 'standard', image: 'i', ready: true, vcpu: 1, memory_mib: 512 }],
  sandboxes: [],
};

const register = (id: string, instanceId?: string) =>
  store.workers.register({
    worker_id: id,
    url: 'https://127.0.0.1:1',
    certificate: 'pem',
    version: '0',
    ...REPORT,
    ...(instanceId === undefined ? {} : { instance_id: instanceId }),
  });

const heartbeat = (id: string, instanceId?: string) =>
  store.workers.heartbeat(id, {
    ...REPORT,
    free: { memory_mib: 1, disk_mib: 1 },
    ...(instanceId === undefined ? {} : { instance_id: instanceId }),
  });

const setSilence = (id: string, seconds: number) =>
  client.query(
    'update workers set heartbeat_at = now() - make_interval(secs => $2) where worker_id = $1',
    [id, seconds],
  );

/** Adds a worker that was last heard of so many seconds ago, with a sandbox. */
async function addWorker(id: string, silentSeconds: number, sandbox = true): Promise<void> {
  await register(id);
  if (sandbox) {
    await client.query(
      `insert into sandboxes
         (vm_id, tenant_id, worker_id, generation, state, template, vcpu, memory_mib, disk_mib, metadata,
          idle_timeout_seconds, max_lifetime_seconds)
       values ($1, $2, $3, 1, 'running', 'standard', 1, 512, 1024, '{}', 60, 7200)`,
      [`vm_${id}`, TENANT, id],
    );
  }
  await setSilence(id, silentSeconds);
}

const findLost = () => store.workers.findLost(TIMES);

test('a worker is lost when it has been silent for long and has sandboxes', async () => {
  for (const id of ['a', 'b', 'c']) await addWorker(id, 1);
  await addWorker('silent', 200);
  await addWorker('lost', 301);
  await addWorker('idle', 301, false);
  expect(await findLost()).toEqual({ removed: [], lost: ['lost'], held: [] });
});

test('a fleet of one has no others to compare with', async () => {
  await addWorker('only', 301);
  expect(await findLost()).toEqual({ removed: [], lost: ['only'], held: [] });
});

test('when most workers are silent at once, none is lost', async () => {
  await addWorker('alive', 1);
  await addWorker('first', 301);
  await addWorker('second', 40);
  expect(await findLost()).toEqual({ removed: [], lost: [], held: ['first'] });
  await addWorker('another', 1);
  expect(await findLost()).toEqual({ removed: [], lost: ['first'], held: [] });
});

test('a worker that restarts in place has longer than others, unless it is to be drained', async () => {
  const times = { unreachableMs: 30_000, lostMs: 30_000 };
  for (const id of ['a', 'b', 'c', 'd']) await addWorker(id, 1);
  await addWorker('w', 45);
  await client.query(`update workers set draining = true where worker_id = 'w'`);
  expect(await store.workers.findLost(times)).toEqual({ removed: [], lost: [], held: [] });
  await setSilence('w', 61);
  expect(await store.workers.findLost(times)).toMatchObject({ lost: ['w'] });
  expect(await findLost()).toMatchObject({ lost: [] });
  await setSilence('w', 31);
  await client.query(`update workers set drain_requested = true where worker_id = 'w'`);
  expect(await store.workers.findLost(times)).toMatchObject({ lost: ['w'] });
});

test('workers that went long ago and have no sandboxes do not count', async () => {
  await addWorker('alive', 1);
  await addWorker('lost', 301);
  for (const id of ['old', 'older']) await addWorker(id, 2 * 3600, false);
  expect(await findLost()).toEqual({ removed: [], lost: ['lost'], held: [] });
});

test('an operator gives up a silent worker, whatever the others do', async () => {
  const db = connect(postgres.url, REQUEST_DEADLINES);
  const fleet = new FleetRepository(db);
  await addWorker('alive', 1);
  await addWorker('first', 60);
  await addWorker('second', 40);
  expect(await fleet.remove('first')).toBe(false);
  expect(await fleet.giveUp('alive')).toBe(false);
  expect(await fleet.giveUp('first')).toBe(true);
  expect(await findLost()).toEqual({ removed: ['first'], lost: [], held: [] });
  expect((await fleet.list()).map(({ worker_id }) => worker_id)).toEqual(['alive', 'second']);
  await db.destroy();
});

test('a report counts each of at most 64 templates once, with at most 64 builds of agents', async () => {
  const kept = async () => (await store.workers.find('w'))?.templates;
  await register('w');
  const agents = Array.from({ length: 65 }, (_, n) => ({ kind: `k${n}`, version: '1' }));
  const one = { template: 't0', image: 'i', ready: true };
  const many = agents.map((_, n) => ({ ...one, template: `t${n}`, agents }));
  const free = { memory_mib: 1, disk_mib: 1 };
  await store.workers.heartbeat('w', { ...REPORT, free, templates: [one, one, ...many] });
  const most = many.map((each) => ({ ...each, agents: agents.slice(0, 64) })).slice(1, 64);
  expect(await kept()).toEqual([one, ...most]);
});

test('how long a worker has been silent is told by the clock of the database', async () => {
  await addWorker('silent', 100);
  const found = await store.workers.find('silent');
  expect(found?.silent_ms).toBeGreaterThanOrEqual(100_000);
  expect(found?.silent_ms).toBeLessThan(160_000);
  expect((await store.workers.list())[0]?.silent_ms).toBeGreaterThanOrEqual(100_000);
});

test('an order to drain outlasts a restart in place until the worker has no sandboxes left', async () => {
  const db = connect(postgres.url, REQUEST_DEADLINES);
  const fleet = new FleetRepository(db);
  await addWorker('w', 1);
  await register('w', 'first');
  expect(await fleet.drain('w')).toBe(true);
  expect(await register('w', 'first')).toBe(true);
  expect(await heartbeat('w', 'first')).toMatchObject({ drain: true });
  await client.query('delete from sandboxes');
  expect(await register('w', 'first')).toBe(true);
  expect(await heartbeat('w', 'first')).toMatchObject({ drain: false });
  await addWorker('other', 1);
  await register('other', 'first');
  expect(await fleet.drain('other')).toBe(true);
  await setSilence('other', 31);
  expect(await register('other', 'second')).toBe(true);
  expect(await heartbeat('other', 'second')).toMatchObject({ drain: false });
  await db.destroy();
});

describe('the id of a worker', () => {
  const contested = async () => {
    const db = connect(postgres.url, REQUEST_DEADLINES);
    const list = await new FleetRepository(db).list();
    await db.destroy();
    return list.map(({ is_contested }) => is_contested);
  };

  test('is refused to another machine while the first one reports', async () => {
    expect(await register('w', 'first')).toBe(true);
    expect(await contested()).toEqual([false]);
    expect(await register('w', 'second')).toBe(false);
    expect(await contested()).toEqual([true]);
    expect(await store.workers.find('w')).toMatchObject({ instance_id: 'first' });
    expect(await heartbeat('w', 'second')).toBeUndefined();
    expect(await heartbeat('w', 'first')).toMatchObject({ drain: false });
  });

  test('goes to another machine when the first one has been silent, which is then refused', async () => {
    await register('w', 'first');
    await setSilence('w', 31);
    expect(await register('w', 'second')).toBe(true);
    expect(await heartbeat('w', 'first')).toBeUndefined();
    expect(await register('w', 'first')).toBe(false);
    expect(await heartbeat('w', 'second')).toBeDefined();
  });

  test('is free for a restart in place, and after its removal', async () => {
    await register('w', 'first');
    expect(await register('w', 'first')).toBe(true);
    await client.query(`update workers set removed_at = now() where worker_id = 'w'`);
    expect(await register('w', 'second')).toBe(true);
  });

  test('is not held by a version that says nothing of its machine, nor against one', async () => {
    await register('w');
    expect(await heartbeat('w', 'first')).toBeDefined();
    expect(await register('w', 'first')).toBe(true);
    expect(await heartbeat('w')).toBeDefined();
    expect(await register('w')).toBe(true);
  });
});
