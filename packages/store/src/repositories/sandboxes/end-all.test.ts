import { randomUUID } from 'node:crypto';
import { END_REASONS } from '@svc/contract';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { isAwaited, lockNow } from '../../../test/awaited.ts';
import { insertSandbox, MEMORY_MIB, removeSandboxes } from '../../../test/insert-sandbox.ts';
import { insertSession } from '../../../test/insert-session.ts';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import { type Ending, end, endAll } from './ending.ts';

const TENANTS = ['usr_1', 'usr_2'];
const WORKERS = ['w1', 'w2'];

let database: TestDatabase;
let count = 0;

beforeAll(async () => {
  database = await startTestDatabase();
  const { db } = database;
  await insertTenants(db, ...TENANTS);
  const row = { url: 'https://127.0.0.1:1', certificate: 'pem', version: '0', vcpu: 2 };
  const room = { memory_mib: 65_536, disk_mib: 65_536, templates: JSON.stringify([]) };
  await db
    .insertInto('workers')
    .values(WORKERS.map((worker_id) => ({ worker_id, ...row, ...room })))
    .execute();
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(() => removeSandboxes(database.db));

interface Changes {
  readonly tenant?: string;
  readonly worker?: string;
  readonly agent?: 'deictic';
  readonly cpu_seconds?: number;
  readonly session_id?: string;
  readonly placed_at?: Date;
}

/** Adds a running sandbox as a placement does, and returns its id. */
async function insert({ tenant = 'usr_1', worker = 'w1', ...changes }: Changes = {}) {
  count += 1;
  const vm_id = `vm_${count}`;
  await insertSandbox(database.db, {
    vm_id,
    tenant_id: tenant,
    worker_id: worker,
    session_generation: 1,
    ...changes,
  });
  return vm_id;
}

const endOf = (vmId: string, changes: Partial<Ending> = {}): Ending => ({
  vmId,
  reason: 'deleted',
  ...changes,
});

async function rowOf(vmId: string) {
  const { db } = database;
  return db.selectFrom('sandboxes').selectAll().where('vm_id', '=', vmId).executeTakeFirstOrThrow();
}

/** The counters of tenants and workers, in the order of their ids. */
async function held(): Promise<number[]> {
  const { db } = database;
  const tenants = await db.selectFrom('tenants').selectAll().orderBy('tenant_id').execute();
  const workers = await db.selectFrom('workers').selectAll().orderBy('worker_id').execute();
  return [
    ...tenants.map((row) => row.active_sandboxes),
    ...workers.map((row) => row.reserved_memory_mib / MEMORY_MIB),
  ];
}

test('releases what each of the sandboxes had, once', async () => {
  const ended = [
    await insert(),
    await insert(),
    await insert({ tenant: 'usr_2' }),
    await insert({ tenant: 'usr_2', worker: 'w2' }),
  ];
  await insert();
  await insert({ tenant: 'usr_2', worker: 'w2' });
  expect(await held()).toEqual([3, 3, 4, 2]);
  await endAll(
    database.db,
    ended.map((vmId) => endOf(vmId)),
  );
  expect(await held()).toEqual([1, 1, 1, 1]);
  await endAll(
    database.db,
    ended.map((vmId) => endOf(vmId)),
  );
  await endAll(database.db, []);
  expect(await held()).toEqual([1, 1, 1, 1]);
});

test('ends only the generation and the worker that are named', async () => {
  const [other, elsewhere, right] = [await insert(), await insert(), await insert()];
  await endAll(database.db, [
    endOf(other, { generation: 2 }),
    endOf(elsewhere, { workerId: 'w2' }),
    endOf(right, { generation: 1, workerId: 'w1' }),
    endOf('vm_unknown'),
  ]);
  const states = await Promise.all([other, elsewhere, right].map(rowOf));
  expect(states.map(({ state }) => state)).toEqual(['running', 'running', 'destroyed']);
  expect(await held()).toEqual([2, 0, 2, 0]);
});

test('writes of each of many sandboxes what a single end does', async () => {
  const { db } = database;
  const facts: Partial<Ending>[] = [
    {},
    { endedAt: '2026-01-02T03:04:05.678Z', cpuSeconds: 7, agentExitCode: 0 },
    { endedAt: '2026-01-02T03:04:05.678Z', cpuSeconds: 3, agentExitCode: 3 },
  ];
  const pairs: { single: string; ending: Ending }[] = [];
  for (const reason of END_REASONS) {
    for (const fact of facts) {
      for (const agent of [undefined, 'deictic'] as const) {
        const make = async () => {
          const session_id = await insertSession(db, 'usr_1');
          const placed_at = new Date('2026-01-01T00:00:00Z');
          const kind = agent === undefined ? {} : { agent };
          return insert({ session_id, cpu_seconds: 5, placed_at, ...kind });
        };
        const [single, one] = [await make(), await make()];
        await end(db, endOf(single, { ...fact, reason }));
        pairs.push({ single, ending: endOf(one, { ...fact, reason }) });
      }
    }
  }
  const rows = await endAll(
    db,
    pairs.map(({ ending }) => ending),
  );
  expect(rows).toHaveLength(pairs.length);
  for (const { single, ending } of pairs) {
    expect(await describeEnd(ending.vmId, ending)).toEqual(await describeEnd(single, ending));
  }
});

/** What an end writes. The time is left out where the database chose it. */
async function describeEnd(vmId: string, { endedAt }: Partial<Ending>) {
  const row = await rowOf(vmId);
  const { db } = database;
  const session = await db
    .selectFrom('sessions')
    .select('status')
    .where('session_id', '=', row.session_id ?? '')
    .executeTakeFirstOrThrow();
  const { state, end_reason, active_connections, cpu_seconds, agent_status, agent_exit_code } = row;
  const at =
    endedAt === undefined ? Math.abs(Date.now() - Number(row.ended_at)) < 60_000 : row.ended_at;
  return [
    state,
    end_reason,
    active_connections,
    cpu_seconds,
    agent_status,
    agent_exit_code,
    session.status,
    at,
  ];
}

test('leaves the session of a later generation active', async () => {
  const { db } = database;
  const session_id = await insertSession(db, 'usr_1');
  const vmId = await insert({ session_id });
  await db.updateTable('sessions').set({ generation: 2 }).execute();
  await endAll(db, [endOf(vmId)]);
  expect(await db.selectFrom('sessions').select('status').executeTakeFirst()).toEqual({
    status: 'active',
  });
});

test('removes the secrets of the agents of these sandboxes alone', async () => {
  const { db } = database;
  const [one, other] = [await insert(), await insert()];
  const id = randomUUID();
  await db.insertInto('master_keys').values({ key_id: id, current: true }).execute();
  for (const vm_id of [one, other]) {
    const bytes = Buffer.from('sealed');
    const row = { vm_id, tenant_id: 'usr_1', sealed_values: bytes, wrapped_key: bytes };
    await db
      .insertInto('agent_secrets')
      .values({ ...row, master_key_id: id })
      .execute();
  }
  await endAll(db, [endOf(one)]);
  const left = await db.selectFrom('agent_secrets').select('vm_id').execute();
  expect(left).toEqual([{ vm_id: other }]);
});

test('counts each sandbox once, and never deadlocks, when the same ones end in several ways at once', async () => {
  const { db } = database;
  const ids: string[] = [];
  for (let made = 0; made < 40; made += 1) {
    ids.push(
      await insert({
        tenant: made % 2 === 0 ? 'usr_1' : 'usr_2',
        worker: made % 3 === 0 ? 'w1' : 'w2',
      }),
    );
  }
  const backwards = [...ids].reverse();
  await Promise.all([
    endAll(
      db,
      ids.map((vmId) => endOf(vmId)),
    ),
    endAll(
      db,
      backwards.map((vmId) => endOf(vmId)),
    ),
    ...backwards.map((vmId) => end(db, endOf(vmId))),
    endAll(
      db,
      ids.map((vmId) => endOf(vmId)),
    ),
  ]);
  expect(await held()).toEqual([0, 0, 0, 0]);
});

test('waits for nobody who inserts rows that refer to the same sandbox, tenant and worker', async () => {
  const { db } = database;
  const [metered, other] = [await insert(), await insert({ tenant: 'usr_2' })];
  await db.transaction().execute(async (inserting) => {
    const key = { generation: 1, tenant_id: 'usr_1' };
    await inserting
      .insertInto('usage_meters')
      .values({ vm_id: metered, ...key })
      .execute();
    await db.transaction().execute(async (ending) => {
      await sql`set local lock_timeout = '1s'`.execute(ending);
      expect(await endAll(ending, [endOf(metered), endOf(other)])).toHaveLength(2);
    });
  });
  expect(await held()).toEqual([0, 0, 0, 0]);
});

type Row = ['tenants' | 'workers', string];
test.each<[string, Row, Row]>([
  ['tenants before workers', ['tenants', 'usr_2'], ['workers', 'w1']],
  ['workers in the order of their ids', ['workers', 'w1'], ['workers', 'w2']],
])('locks %s', async (_order, first, second) => {
  const { db } = database;
  const endings = [
    endOf(await insert({ worker: 'w2' })),
    endOf(await insert({ tenant: 'usr_2', worker: 'w1' })),
  ];
  let ended: ReturnType<typeof endAll> | undefined;
  await db.transaction().execute(async (other) => {
    await lockNow(other, ...first);
    ended = endAll(db, endings);
    await expect.poll(() => isAwaited(other)).toBe(true);
    await lockNow(other, ...second);
  });
  expect(await ended).toHaveLength(2);
  expect(await held()).toEqual([0, 0, 0, 0]);
});
