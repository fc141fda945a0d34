import { randomUUID } from 'node:crypto';
import { type AgentBuild, LIMITS, type SandboxPlacement, type SandboxState } from '@svc/contract';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isAwaited, lockNow } from '../../../test/awaited.ts';
import { insertSession } from '../../../test/insert-session.ts';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import { type PlacedRow, type PlacementRequest, placeAgain, reserve } from './placement.ts';

const TENANT = 'usr_1';
const RULES = { unreachableMs: 30_000, sandboxesPerTenant: 3 };

let database: TestDatabase;
let count = 0;

beforeAll(async () => {
  database = await startTestDatabase();
  await insertTenants(database.db, TENANT, 'usr_2');
});
afterAll(() => database?.[Symbol.asyncDispose]());
beforeEach(async () => {
  const { db } = database;
  await sql`truncate workers, sandboxes, sessions, idempotency_keys cascade`.execute(db);
  await winRaces();
  await db.updateTable('tenants').set({ active_sandboxes: 0 }).execute();
});

interface Offer {
  readonly ready?: boolean;
  readonly vcpu?: number;
  readonly memory_mib?: number;
  readonly disk_mib?: number;
  readonly agents?: readonly AgentBuild[];
}

interface WorkerChanges {
  readonly memory_mib?: number;
  readonly free_memory_mib?: number;
  readonly reserved_memory_mib?: number;
  readonly draining?: boolean;
  readonly cordoned?: boolean;
  readonly heartbeat_at?: Date;
  readonly removed_at?: Date;
  readonly vcpu?: number;
}

/** Adds a worker with one template, `standard`, which its row may repeat. */
async function addWorker(
  id: string,
  changes: WorkerChanges = {},
  offer: Offer = {},
  { repeated = 1 } = {},
) {
  const template = { template: 'standard', ready: true, ...offer };
  await database.db
    .insertInto('workers')
    .values({
      worker_id: id,
      url: 'https://127.0.0.1:1',
      certificate: 'pem',
      version: '0',
      vcpu: 2,
      memory_mib: 4096,
      disk_mib: 65_536,
      templates: JSON.stringify(Array.from({ length: repeated }, () => template)),
      heartbeat_at: new Date(),
      registered_at: new Date(),
      ...changes,
    })
    .execute();
}

function request(
  placement: Partial<SandboxPlacement> = {},
  changes: Partial<PlacementRequest> = {},
): PlacementRequest {
  count += 1;
  return {
    vmId: `vm_${count}`,
    tenantId: TENANT,
    placement: {
      template: 'standard',
      size: {},
      idle_timeout_seconds: 60,
      max_lifetime_seconds: 7200,
      ...placement,
    },
    metadata: { user_id: 'u' },
    persistenceUrl: undefined,
    ...changes,
  };
}

const outcomeOf = (placed: PlacementRequest) => reserve(database.db, placed, RULES);
async function place(placement: Partial<SandboxPlacement> = {}): Promise<PlacedRow> {
  const outcome = await outcomeOf(request(placement));
  if (outcome.placed === undefined) throw new Error(outcome.refusal);
  return outcome.placed;
}
/** The worker of a new sandbox, or why there is none. */
async function workerOf(placement: Partial<SandboxPlacement> = {}): Promise<string> {
  const outcome = await outcomeOf(request(placement));
  return outcome.placed === undefined ? outcome.refusal : outcome.placed.worker_id;
}
async function held() {
  const { db } = database;
  const tenant = await db
    .selectFrom('tenants')
    .select('active_sandboxes')
    .where('tenant_id', '=', TENANT)
    .executeTakeFirstOrThrow();
  const workers = await db
    .selectFrom('workers')
    .select(['worker_id', 'reserved_memory_mib'])
    .execute();
  const memory = workers.map((row) => [row.worker_id, row.reserved_memory_mib] as const);
  return { sandboxes: tenant.active_sandboxes, ...Object.fromEntries(memory) };
}

async function winRaces(): Promise<void> {
  await sql`drop function if exists skip cascade`.execute(database.db);
  await sql`drop sequence if exists tries`.execute(database.db);
}

/** Makes reservations lose their race for the memory of a worker, the first `times`. Returns how many were tried. */
async function loseRaces(times: number): Promise<() => Promise<number>> {
  const { db } = database;
  await winRaces();
  await sql`create sequence tries`.execute(db);
  await sql
    .raw(
      `create function skip() returns trigger language plpgsql as $$ begin
         if nextval('tries') <= ${times} then return null; end if;
         return new;
       end $$;
       create trigger skip before update on workers for each row execute function skip();`,
    )
    .execute(db);
  return async () => {
    const { rows } = await sql<{
      tries: number;
    }>`select last_value::int as tries from tries`.execute(db);
    return rows[0]?.tries ?? 0;
  };
}

describe('a placed sandbox', () => {
  test('has the size of its template, and nothing that was not asked for', async () => {
    await addWorker('w', {}, { vcpu: 2, memory_mib: 512, disk_mib: 2048 });
    expect(await place()).toMatchObject({
      tenant_id: TENANT,
      worker_id: 'w',
      state: 'creating',
      generation: 1,
      template: 'standard',
      vcpu: 2,
      memory_mib: 512,
      disk_mib: 2048,
      idle_timeout_seconds: 60,
      max_lifetime_seconds: 7200,
      metadata: { user_id: 'u' },
      persistence_url: null,
      agent: null,
      session_id: null,
      session_generation: null,
    });
    expect(await held()).toEqual({ sandboxes: 1, w: 512 });
  });

  test('has what was asked for', async () => {
    await addWorker('w', {}, { vcpu: 2, memory_mib: 512, disk_mib: 2048 });
    const sessionId = await insertSession(database.db, TENANT);
    const wanted = request(
      {
        size: { vcpu: 4, memory_mib: 1024, disk_mib: 4096 },
        agent: { kind: 'codex', mode: 'session', vendor: 'openai', wire_version: 2 },
      },
      { persistenceUrl: 'https://example.com/state', session: { sessionId, generation: 3 } },
    );
    const { placed } = await outcomeOf(wanted);
    expect(placed).toMatchObject({
      vcpu: 4,
      memory_mib: 1024,
      disk_mib: 4096,
      persistence_url: 'https://example.com/state',
      agent: 'codex',
      session_id: sessionId,
      session_generation: 3,
      placement: wanted.placement,
    });
    expect(await held()).toEqual({ sandboxes: 1, w: 1024 });
  });

  test('has 1 GiB of memory when neither the request nor the template says how much', async () => {
    await addWorker('w');
    expect(await place()).toMatchObject({ memory_mib: 1024, vcpu: null, disk_mib: null });
  });
});

describe('the worker', () => {
  const size = { memory_mib: 512 };

  test('is the one of two with less of its memory promised, and of equal ones the first', async () => {
    await addWorker('b', { memory_mib: 2048, vcpu: 64 });
    await addWorker('a', { memory_mib: 8192, vcpu: 64, reserved_memory_mib: 7000 });
    expect([await workerOf({ size }), await workerOf({ size })]).toEqual(['b', 'b']);
    await sql`update workers set memory_mib = 2048, reserved_memory_mib = 0`.execute(database.db);
    expect(await workerOf({ size })).toBe('a');
  });

  test('is the one of two with less of its processors promised', async () => {
    await addWorker('small', { memory_mib: 65_536, vcpu: 4 });
    await addWorker('large', { memory_mib: 65_536, vcpu: 16 }, { vcpu: 2 });
    const chosen = [];
    for (const vcpu of [2, 4, 4]) chosen.push(await workerOf({ size: { ...size, vcpu } }));
    expect(chosen).toEqual(['large', 'large', 'large']);
    await sql`update workers set vcpu = 8 where worker_id = 'small'`.execute(database.db);
    await database.db.updateTable('tenants').set({ active_sandboxes: 0 }).execute();
    expect(await workerOf({ size: { ...size, vcpu: 2 } })).toBe('small');
    await sql`update sandboxes set state = 'destroyed', ended_at = now(), end_reason = 'deleted'`.execute(
      database.db,
    );
    expect(await workerOf({ size: { ...size, vcpu: 2 } })).toBe('large');
  });

  test('is never the fullest of three', async () => {
    await addWorker('a', { memory_mib: 65_536 });
    await addWorker('b', { memory_mib: 65_536 });
    await addWorker('full', { memory_mib: 65_536, reserved_memory_mib: 32_768 });
    const chosen = new Set<string>();
    for (let made = 0; made < 40; made += 1) {
      chosen.add(await workerOf({ size }));
      await sql`delete from sandboxes`.execute(database.db);
      await database.db.updateTable('tenants').set({ active_sandboxes: 0 }).execute();
    }
    expect([...chosen].sort()).toEqual(['a', 'b']);
  });

  test('is chosen no more often for repeating its template', async () => {
    const room = { memory_mib: 65_536, vcpu: 1024 };
    await addWorker('a', room);
    await addWorker('b', room, {}, { repeated: 1000 });
    const chosen = [];
    for (let made = 0; made < 40; made += 1) {
      chosen.push(await workerOf({ size }));
      await sql`delete from sandboxes`.execute(database.db);
      await database.db.updateTable('tenants').set({ active_sandboxes: 0 }).execute();
    }
    expect(chosen.filter((id) => id === 'a')).toHaveLength(20);
  });

  test.each<[string, Offer]>([
    ['processors', { vcpu: LIMITS.vcpuMax + 1 }],
    ['memory', { memory_mib: LIMITS.memoryMibMax + 1 }],
    ['disk', { disk_mib: LIMITS.diskMibMax + 1 }],
  ])('is none whose template has more %s than a sandbox may', async (_which, offer) => {
    await addWorker('w', { memory_mib: 65_536 }, offer);
    expect(await workerOf()).toBe('template_not_available');
    const most = { vcpu: LIMITS.vcpuMax, memory_mib: LIMITS.memoryMibMax };
    await addWorker('other', { memory_mib: 65_536 }, { ...most, disk_mib: LIMITS.diskMibMax });
    expect(await workerOf()).toBe('other');
  });

  test('has free memory, if there is one', async () => {
    await addWorker('full', { memory_mib: 8192, free_memory_mib: 0 });
    await addWorker('free', { memory_mib: 1024, free_memory_mib: 1 });
    await addWorker('unknown', { memory_mib: 512 });
    const chosen = [];
    for (let turn = 0; turn < 3; turn += 1) chosen.push(await workerOf({ size }));
    expect(chosen).toEqual(['free', 'free', 'unknown']);
  });

  test.each([
    ['drains', { draining: true }],
    ['is cordoned', { cordoned: true }],
    ['was removed', { removed_at: new Date() }],
    ['has been silent for half a minute', { heartbeat_at: new Date(Date.now() - 31_000) }],
  ])('is none that %s', async (_which, changes) => {
    await addWorker('w', changes);
    expect(await workerOf()).toBe('no_workers');
    await addWorker('other', { memory_mib: 2048 });
    expect(await workerOf()).toBe('other');
  });

  test('may have been silent for almost half a minute', async () => {
    await addWorker('w', { heartbeat_at: new Date(Date.now() - 20_000) });
    expect(await workerOf()).toBe('w');
  });

  test('has the template ready, and room for all of the sandbox', async () => {
    await addWorker('w', { memory_mib: 1024 }, { ready: false });
    expect(await workerOf()).toBe('template_not_available');
    await addWorker('other', { memory_mib: 1024, reserved_memory_mib: 1 });
    expect(await workerOf({ size: { memory_mib: 1024 } })).toBe('no_capacity');
    expect(await workerOf({ size: { memory_mib: 1023 } })).toBe('other');
    expect(await workerOf({ template: 'browser' })).toBe('template_not_available');
  });

  test('has the build of the agent that is asked for', async () => {
    const agent = { kind: 'codex', mode: 'session', vendor: 'openai', wire_version: 2 } as const;
    await addWorker('none');
    expect(await workerOf({ agent })).toBe('none');
    await addWorker(
      'mixed',
      {},
      {
        agents: [
          { kind: 'codex', version: '1' },
          { kind: 'deictic', version: '2' },
        ],
      },
    );
    expect(await workerOf({ agent: { ...agent, version: '1' } })).toBe('mixed');
    expect(await workerOf({ agent: { ...agent, version: '2' } })).toBe('template_not_available');
  });
});

describe('refusals', () => {
  test('come from the limit of the tenant first', async () => {
    for (let made = 0; made < RULES.sandboxesPerTenant; made += 1) {
      expect(await workerOf()).toBe('no_workers');
    }
    await addWorker('w', { memory_mib: 65_536 });
    for (let made = 0; made < RULES.sandboxesPerTenant; made += 1)
      expect(await workerOf()).toBe('w');
    expect(await workerOf()).toBe('tenant_limit');
    await sql`update workers set draining = true`.execute(database.db);
    expect(await workerOf()).toBe('tenant_limit');
    const another = await outcomeOf(request({}, { tenantId: 'usr_2' }));
    expect(another).toEqual({ refusal: 'no_workers' });
    expect(await held()).toMatchObject({ sandboxes: 3 });
  });

  test('reserve nothing', async () => {
    await addWorker('w', { memory_mib: 1023 });
    expect(await outcomeOf(request())).toEqual({ refusal: 'no_capacity' });
    expect(await held()).toEqual({ sandboxes: 0, w: 0 });
  });
});

describe('a request with an idempotency key', () => {
  test('places nothing when it does not hold the key', async () => {
    await addWorker('w');
    const hold = { tenantId: TENANT, operation: 'o', key: 'k', holder: randomUUID() };
    const keyed = () => outcomeOf(request({}, { hold }));
    expect(await keyed()).toEqual({ refusal: 'key_taken_over' });
    expect(await held()).toEqual({ sandboxes: 0, w: 0 });
    await sql`
      insert into idempotency_keys (tenant_id, operation, key, holder, body_hash, subject, locked_until)
      values (${TENANT}, 'o', 'k', ${hold.holder}, '\\x00', 's', now())`.execute(database.db);
    expect((await keyed()).placed).toMatchObject({ worker_id: 'w' });
    expect(await outcomeOf(request({ size: { memory_mib: 16_384 } }, { hold }))).toEqual({
      refusal: 'no_capacity',
    });
  });
});

describe('a placement', () => {
  test('waits for nobody who inserts rows that refer to the same tenant', async () => {
    await addWorker('w');
    const { db } = database;
    await db.transaction().execute(async (inserting) => {
      await insertSession(inserting, TENANT);
      await db.transaction().execute(async (placing) => {
        await sql`set local lock_timeout = '1s'`.execute(placing);
        expect((await reserve(placing, request(), RULES)).placed).toMatchObject({ worker_id: 'w' });
      });
    });
  });
});

describe('a race for the memory of a worker', () => {
  test('is run again, up to five times', async () => {
    await addWorker('w');
    await loseRaces(4);
    expect(await workerOf()).toBe('w');
    const tries = await loseRaces(100);
    expect(await outcomeOf(request())).toEqual({ refusal: 'no_capacity' });
    expect(await tries()).toBe(5);
  });
});

describe('another placement of a sandbox', () => {
  const again = (row: PlacedRow, excluded: readonly string[] = ['a']) =>
    placeAgain(database.db, row, RULES, excluded);
  const setState = (row: PlacedRow, state: SandboxState) =>
    database.db.updateTable('sandboxes').set({ state }).where('vm_id', '=', row.vm_id).execute();

  test('moves it and its memory to a worker that is not excluded, as the next generation', async () => {
    await addWorker('a', { memory_mib: 8192 }, { memory_mib: 256 });
    const row = await place();
    await addWorker('b', { memory_mib: 2048 }, { memory_mib: 512 });
    await setState(row, 'booting');
    const { placed } = await again(row);
    expect(placed).toMatchObject({
      vm_id: row.vm_id,
      worker_id: 'b',
      generation: 2,
      revision: 0,
      state: 'creating',
      memory_mib: 512,
    });
    expect(Number(placed?.placed_at)).toBeGreaterThan(Number(row.placed_at));
    expect(await held()).toEqual({ sandboxes: 1, a: 0, b: 512 });
    // The earlier generation is not placed once more.
    expect(await again(row, [])).toEqual({ refusal: 'superseded' });
    expect(await held()).toEqual({ sandboxes: 1, a: 0, b: 512 });
  });

  test('locks the two workers in the order of their ids', async () => {
    const { db } = database;
    await addWorker('a');
    const row = await place();
    await addWorker('b');
    let moved: ReturnType<typeof again> | undefined;
    await db.transaction().execute(async (other) => {
      await lockNow(other, 'workers', 'a');
      moved = again(row);
      await expect.poll(() => isAwaited(other)).toBe(true);
      await lockNow(other, 'workers', 'b');
    });
    expect((await moved)?.placed).toMatchObject({ worker_id: 'b' });
    expect(await held()).toEqual({ sandboxes: 1, a: 0, b: 1024 });
  });

  test.each<SandboxState>(['running', 'paused', 'stopping'])(
    'does not happen once it is %s',
    async (state) => {
      await addWorker('a');
      const row = await place();
      await addWorker('b');
      await setState(row, state);
      expect(await again(row)).toEqual({ refusal: 'superseded' });
      expect(await held()).toEqual({ sandboxes: 1, a: 1024, b: 0 });
    },
  );

  test('is refused without another worker, and changes nothing', async () => {
    await addWorker('a');
    const row = await place();
    expect(await again(row)).toEqual({ refusal: 'no_capacity' });
    await sql`update workers set cordoned = true`.execute(database.db);
    expect(await again(row)).toEqual({ refusal: 'no_workers' });
    expect(await held()).toEqual({ sandboxes: 1, a: 1024 });
  });

  test.each<SandboxState>(['creating', 'configuring', 'booting'])(
    'is tried up to five times while it is %s',
    async (state) => {
      await addWorker('a');
      const row = await place();
      await addWorker('b');
      await setState(row, state);
      const tries = await loseRaces(100);
      expect(await again(row)).toEqual({ refusal: 'no_capacity' });
      expect(await tries()).toBe(5);
      await loseRaces(4);
      expect((await again(row)).placed).toMatchObject({ worker_id: 'b', generation: 2 });
    },
  );
});
