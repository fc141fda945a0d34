import { randomUUID } from 'node:crypto';
import { END_REASONS, type EndReason } from '@svc/contract';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { insertSandbox, MEMORY_MIB, removeSandboxes } from '../../../test/insert-sandbox.ts';
import { insertSession } from '../../../test/insert-session.ts';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import { type Ending, end, endLost, forget } from './ending.ts';

const TENANT = 'usr_1';
const WORKER = 'w1';

/** The status of the session of a sandbox that ends for this reason. */
const SESSION_AFTER: Readonly<Record<EndReason, string>> = {
  deleted: 'completed',
  idle_timeout: 'completed',
  drained: 'completed',
  agent_exited: 'completed',
  credits_exhausted: 'completed',
  max_lifetime: 'expired',
  worker_lost: 'failed',
  boot_failed: 'failed',
  disk_pressure: 'failed',
};

let database: TestDatabase;
let count = 0;

beforeAll(async () => {
  database = await startTestDatabase();
  const { db } = database;
  await insertTenants(db, TENANT);
  await db
    .insertInto('workers')
    .values({
      worker_id: WORKER,
      url: 'https://127.0.0.1:1',
      certificate: 'pem',
      version: '0',
      vcpu: 2,
      memory_mib: 65_536,
      disk_mib: 65_536,
      templates: JSON.stringify([]),
      heartbeat_at: new Date(),
      registered_at: new Date(),
    })
    .execute();
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(() => removeSandboxes(database.db));

interface Changes {
  readonly state?: 'creating' | 'configuring' | 'booting' | 'running' | 'paused';
  readonly agent?: 'deictic';
  readonly agent_exit_code?: number;
  readonly cpu_seconds?: number;
  readonly session_id?: string;
  readonly session_generation?: number;
  readonly delete_requested_at?: Date;
  readonly placed_at?: Date;
}

/** Adds a sandbox as a placement does, and returns its id. */
async function insert(changes: Changes = {}): Promise<string> {
  count += 1;
  const vm_id = `vm_${count}`;
  await insertSandbox(database.db, { vm_id, tenant_id: TENANT, worker_id: WORKER, ...changes });
  return vm_id;
}

const endOf = (vmId: string, ending: Partial<Ending> = {}) =>
  end(database.db, { vmId, reason: 'deleted', ...ending });

/** What the counters hold for live sandboxes. */
async function held(): Promise<{ sandboxes: number; memoryMib: number }> {
  const { db } = database;
  const tenant = await db.selectFrom('tenants').selectAll().executeTakeFirstOrThrow();
  const worker = await db.selectFrom('workers').selectAll().executeTakeFirstOrThrow();
  return { sandboxes: tenant.active_sandboxes, memoryMib: worker.reserved_memory_mib };
}

async function sessionOf(vmId: string, generation: number, reason: EndReason, keeps?: boolean) {
  const { db } = database;
  const { session_id: id } = await db
    .selectFrom('sandboxes')
    .select('session_id')
    .where('vm_id', '=', vmId)
    .executeTakeFirstOrThrow();
  await db
    .updateTable('sessions')
    .set({ generation })
    .where('session_id', '=', id ?? '')
    .execute();
  await endOf(vmId, { reason, ...(keeps === undefined ? {} : { keepsSession: keeps }) });
  return db
    .selectFrom('sessions')
    .select(['status', 'ended_at'])
    .where('session_id', '=', id ?? '')
    .executeTakeFirstOrThrow();
}

async function insertWithSession(changes: Changes = {}): Promise<string> {
  const session_id = await insertSession(database.db, TENANT);
  return insert({ session_id, session_generation: 1, agent: 'deictic', ...changes });
}

test.each(END_REASONS)('the end by %s ends the session', async (reason) => {
  const ended = await sessionOf(await insertWithSession(), 1, reason);
  expect(ended).toMatchObject({ status: SESSION_AFTER[reason], ended_at: expect.any(Date) });
});

test('a session that has moved on to another sandbox stays active, and so does one that is to be started again', async () => {
  const active = { status: 'active', ended_at: null };
  expect(await sessionOf(await insertWithSession(), 2, 'worker_lost')).toEqual(active);
  expect(await sessionOf(await insertWithSession(), 1, 'worker_lost', true)).toEqual(active);
  expect(await sessionOf(await insertWithSession(), 1, 'worker_lost', false)).toMatchObject({
    status: 'failed',
  });
});

test('a session ends with a sandbox whose deletion was requested, even if it is to be started again', async () => {
  const deleted = await insertWithSession({ delete_requested_at: new Date() });
  expect(await sessionOf(deleted, 1, 'deleted', true)).toMatchObject({ status: 'completed' });
});

test('releases the counters of the sandbox that ended, and of no other', async () => {
  const [one] = [await insert(), await insert()];
  expect(await endOf(one)).toMatchObject({
    state: 'destroyed',
    end_reason: 'deleted',
    active_connections: 0,
  });
  expect(await held()).toEqual({ sandboxes: 1, memoryMib: MEMORY_MIB });
  expect(await endOf(one)).toBeUndefined();
  expect(await held()).toEqual({ sandboxes: 1, memoryMib: MEMORY_MIB });
});

test('removes the secrets of the agent of this sandbox alone', async () => {
  const { db } = database;
  const [one, other] = [await insert(), await insert()];
  const id = randomUUID();
  await db.insertInto('master_keys').values({ key_id: id, current: true }).execute();
  for (const vm_id of [one, other]) {
    const bytes = Buffer.from('sealed');
    const row = { vm_id, tenant_id: TENANT, sealed_values: bytes, wrapped_key: bytes };
    await db
      .insertInto('agent_secrets')
      .values({ ...row, master_key_id: id })
      .execute();
  }
  await endOf(one);
  const left = await db.selectFrom('agent_secrets').select('vm_id').execute();
  expect(left).toEqual([{ vm_id: other }]);
});

test('ends only the generation, the worker and the progress that it names', async () => {
  const running = await insert();
  expect(await endOf(running, { generation: 2 })).toBeUndefined();
  expect(await endOf(running, { workerId: 'another' })).toBeUndefined();
  expect(await endOf(running, { unstarted: true })).toBeUndefined();
  expect(await endOf(running, { generation: 1, workerId: WORKER, unstarted: false })).toMatchObject(
    { vm_id: running },
  );
  for (const state of ['creating', 'configuring', 'booting'] as const) {
    expect(await endOf(await insert({ state }), { unstarted: true })).toBeDefined();
  }
  expect(await endOf(await insert({ state: 'paused' }), { unstarted: true })).toBeUndefined();
});

/** The number of statements that wait for a lock. */
async function waiting(): Promise<number> {
  const { rows } = await sql`select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(database.db);
  return rows.length;
}

test('gives a sandbox up only while its worker is silent or removed, whatever report comes meanwhile', async () => {
  const { db } = database;
  const setWorker = (seconds: number, removed_at: Date | null = null, by = db) =>
    by
      .updateTable('workers')
      .set({ heartbeat_at: sql`now() - make_interval(secs => ${seconds})`, removed_at })
      .execute();
  const lost = async (generation = 1) =>
    endLost(db, { vmId: await insert(), generation, silentMs: 30_000 });
  await setWorker(29);
  expect(await lost()).toBeUndefined();
  await setWorker(0, new Date());
  expect(await lost()).toMatchObject({ end_reason: 'worker_lost' });
  await setWorker(31);
  expect(await lost(2)).toBeUndefined();
  expect(await lost()).toMatchObject({ end_reason: 'worker_lost' });
  const vmId = await insert();
  const outcome = await db.transaction().execute(async (report) => {
    await setWorker(0, null, report);
    const ended = endLost(db, { vmId, silentMs: 30_000 });
    await expect.poll(waiting).toBe(1);
    return { ended };
  });
  expect(await outcome.ended).toBeUndefined();
  expect(await endOf(vmId)).toBeDefined();
});

test('gives up a sandbox of a worker that restarts in place later, but not one of a worker that is to be drained', async () => {
  const { db } = database;
  const setWorker = (seconds: number, changes: object = { draining: true }, by = db) =>
    by
      .updateTable('workers')
      .set({
        heartbeat_at: sql`now() - make_interval(secs => ${seconds})`,
        ...{ draining: false, drain_requested: false, removed_at: null },
        ...changes,
      })
      .execute();
  const lost = async (silentMs = 30_000) =>
    (await endLost(db, { vmId: await insert(), silentMs }))?.end_reason;
  await setWorker(45);
  expect(await lost()).toBeUndefined();
  await setWorker(61);
  expect(await lost()).toBe('worker_lost');
  expect(await lost(300_000)).toBeUndefined();
  await setWorker(31, { draining: false });
  expect(await lost()).toBe('worker_lost');
  await setWorker(31, { draining: true, drain_requested: true });
  expect(await lost()).toBe('worker_lost');
  await setWorker(31, { draining: true, removed_at: new Date() });
  expect(await lost()).toBe('worker_lost');
  // A restart that is announced between the look and the lock counts.
  await setWorker(31, { draining: false });
  const vmId = await insert();
  const outcome = await db.transaction().execute(async (report) => {
    await setWorker(31, { draining: true }, report);
    const ended = endLost(db, { vmId, silentMs: 30_000 });
    await expect.poll(waiting).toBe(1);
    return { ended };
  });
  expect(await outcome.ended).toBeUndefined();
});

test('takes the times of the worker, and never less CPU time than before', async () => {
  const endedAt = '2026-01-02T03:04:05.678Z';
  const placed_at = new Date('2026-01-02T03:00:00.000Z');
  const vmId = await insert({ cpu_seconds: 5, placed_at });
  const ended = await endOf(vmId, { endedAt, cpuSeconds: 7 });
  expect(ended).toMatchObject({ ended_at: new Date(endedAt), cpu_seconds: 7 });
  const behind = await endOf(await insert({ cpu_seconds: 5 }), { cpuSeconds: 4 });
  expect(behind?.cpu_seconds).toBe(5);
  const before = Date.now();
  const unknown = await endOf(await insert({ cpu_seconds: 5 }));
  expect(unknown?.cpu_seconds).toBe(5);
  // The database rounds to milliseconds.
  expect(Number(unknown?.ended_at)).toBeGreaterThanOrEqual(before - 1);
  expect(Number(unknown?.ended_at)).toBeLessThanOrEqual(Date.now() + 1);
});

test('believes no end before the sandbox was placed, and none in the future', async () => {
  const placed_at = new Date(Date.now() - 3_600_000);
  const early = await insertWithSession({ placed_at });
  expect(await endOf(early, { endedAt: '2001-01-01T00:00:00Z' })).toMatchObject({
    ended_at: placed_at,
  });
  const vmId = await insertWithSession({ placed_at });
  const late = await endOf(vmId, { endedAt: '2999-01-01T00:00:00Z' });
  expect(Math.abs(Date.now() - Number(late?.ended_at))).toBeLessThan(60_000);
  const { ended_at } = await database.db
    .selectFrom('sessions')
    .select('ended_at')
    .where('session_id', '=', late?.session_id ?? '')
    .executeTakeFirstOrThrow();
  expect(ended_at).toEqual(late?.ended_at);
});

/** How long ago a sandbox ended, by the database's clock. */
async function endAgeOf(vmId: string): Promise<number | undefined> {
  const { rows } = await sql<{ ms: number }>`
    select extract(epoch from now() - ended_at)::float8 * 1000 as ms
    from sandboxes where vm_id = ${vmId}`.execute(database.db);
  return rows[0]?.ms;
}

test.each([-60, 60])(
  'counts back from its own clock when that of the worker is %i minutes off',
  async (minutes) => {
    const endedAt = new Date(Date.now() + minutes * 60_000).toISOString();
    const vmId = await insert({ placed_at: new Date(Date.now() - 24 * 3_600_000) });
    await endOf(vmId, { endedAt, endAgeMs: 300_000 });
    const age = await endAgeOf(vmId);
    expect(age).toBeGreaterThan(299_000);
    expect(age).toBeLessThan(330_000);
  },
);

test('keeps the first end of those that are reported, and none before the sandbox was placed', async () => {
  const placed_at = new Date(Date.now() - 60_000);
  const vmId = await insert({ placed_at });
  const first = await endOf(vmId, { endAgeMs: Number.MAX_SAFE_INTEGER });
  expect(first?.ended_at).toEqual(placed_at);
  expect(await endOf(vmId, { endAgeMs: 0 })).toBeUndefined();
  expect(await endAgeOf(vmId)).toBeGreaterThanOrEqual(59_000);
});

test.each<[string, Changes, number | undefined, string | null, number | null]>([
  ['no agent', {}, undefined, null, null],
  ['an agent that did not exit', { agent: 'deictic' }, undefined, 'failed', null],
  ['an agent that exited well', { agent: 'deictic' }, 0, 'completed', 0],
  ['an agent that exited with 3', { agent: 'deictic' }, 3, 'failed', 3],
  [
    'an agent whose exit was reported before',
    { agent: 'deictic', agent_exit_code: 0 },
    undefined,
    'completed',
    0,
  ],
])('%s', async (_which, changes, agentExitCode, status, exitCode) => {
  const ended = await endOf(await insert(changes), { agentExitCode });
  expect(ended).toMatchObject({ agent_status: status, agent_exit_code: exitCode });
});

test('forgets only this generation of a sandbox that has not started and that nobody deletes', async () => {
  const unstarted = await insert({ state: 'creating' });
  expect(await forget(database.db, unstarted, 2)).toBeUndefined();
  expect(await forget(database.db, unstarted, 1)).toMatchObject({ vm_id: unstarted });
  const unasked = await insert({ state: 'booting' });
  expect(await forget(database.db, unasked)).toMatchObject({ vm_id: unasked });
  expect(await held()).toEqual({ sandboxes: 0, memoryMib: 0 });
  const deleted = await insert({ state: 'creating', delete_requested_at: new Date() });
  expect(await forget(database.db, deleted)).toBeUndefined();
  expect(await forget(database.db, await insert({ state: 'running' }))).toBeUndefined();
});
