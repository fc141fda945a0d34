import type { AgentBuild, SandboxSize, WorkerSandbox } from '@svc/contract';
import { Kysely, PostgresDialect, type RawBuilder } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../../test/test-postgres.ts';
import { openStore, type Store } from '../../store.ts';
import type { PlacementRules } from './choose-worker.ts';
import { listStatement } from './lookup.ts';
import type { PlacementRequest } from './placement.ts';

const RULES: PlacementRules = {
  unreachableMs: 30_000,
  sandboxesPerTenant: 50,
};
const TENANT = 'usr_1';
/** Compiles statements, and runs none. */
const NO_DATABASE = new PostgresDialect({ pool: async () => Promise.reject(new Error('unused')) });

let postgres: TestPostgres;
let store: Store;
let client: pg.Client;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({ url: postgres.url, placement: RULES });
  client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
});

afterAll(async () => {
  await client?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  // Accounts stay, because the ledger of their money does.
  await client.query('truncate workers, sandboxes, otp_codes, otp_requests cascade');
  await client.query('update tenants set active_sandboxes = 0');
  await store.tenants.findOrCreate('ada@example.com', TENANT);
});

let counter = 0;
function request(size: SandboxSize = { memory_mib: 512 }): PlacementRequest {
  counter += 1;
  return {
    vmId: `vm_${counter}`,
    tenantId: TENANT,
    placement: {
      template: 'standard',
      size,
      idle_timeout_seconds: 60,
      max_lifetime_seconds: 7200,
    },
    metadata: { user_id: 'u' },
    persistenceUrl: undefined,
  };
}

async function addWorker(
  workerId: string,
  memoryMib: number,
  ready = true,
  agents?: AgentBuild[],
): Promise<void> {
  await store.workers.register({
    worker_id: workerId,
    url: 'https://127.0.0.1:1',
    certificate: 'pem',
    version: '0',
    capacity: { vcpu: 2, memory_mib: memoryMib, disk_mib: 10_000 },
    templates: [
      {
        template: 'standard',
        image: 'i',
        ready,
        vcpu: 1,
        memory_mib: 512,
        ...(agents === undefined ? {} : { agents }),
      },
    ],
    sandboxes: [],
  });
}

async function place(size?: SandboxSize) {
  const outcome = await store.sandboxes.reserve(request(size));
  if (outcome.placed === undefined) throw new Error(outcome.refusal);
  return outcome.placed;
}

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** The number of rows of tables that PostgreSQL reads to execute a statement. */
async function rowsRead(statement: RawBuilder<unknown>): Promise<number> {
  const { sql: text, parameters } = statement.compile(new Kysely({ dialect: NO_DATABASE }));
  const explained = await client.query(`explain (analyze, format json) ${text}`, [...parameters]);
  const count = (node: PlanNode): number => {
    const own = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
    const below = (node.Plans ?? []).reduce((sum, child) => sum + count(child), 0);
    return below + (node['Relation Name'] === undefined ? 0 : own);
  };
  return count(explained.rows[0]['QUERY PLAN'][0].Plan);
}

async function reserved(workerId: string): Promise<number | undefined> {
  return (await store.workers.find(workerId))?.reserved_memory_mib;
}

function report(vmId: string, changes: Partial<WorkerSandbox> = {}): WorkerSandbox {
  return {
    vm_id: vmId,
    generation: 1,
    tenant_id: TENANT,
    template: 'standard',
    state: 'running',
    vcpu: 1,
    cpu_fraction: 1,
    memory_mib: 512,
    disk_mib: 2048,
    rootfs: 'standard.qcow2',
    host_port: 2201,
    endpoint: '10.0.0.1',
    created_at: new Date().toISOString(),
    active_connections: 0,
    cpu_seconds: 1,
    ...changes,
  };
}

test('places on the worker with more room and reserves its memory', async () => {
  await addWorker('small', 1024);
  await addWorker('large', 4096);
  const sandbox = await place();
  expect(sandbox).toMatchObject({
    worker_id: 'large',
    state: 'creating',
    memory_mib: 512,
    vcpu: 1,
  });
  expect(await reserved('large')).toBe(512);
  expect(await reserved('small')).toBe(0);
});

test('uses the template’s memory size when the request has none', async () => {
  await addWorker('w', 4096);
  expect(await place({})).toMatchObject({ memory_mib: 512, placement: { size: {} } });
});

test('chooses only workers whose image carries the build of the agent', async () => {
  const wanting = (version?: string) => ({
    ...request(),
    placement: {
      ...request().placement,
      agent: {
        kind: 'codex' as const,
        mode: 'session' as const,
        vendor: 'openai' as const,
        wire_version: 2 as const,
        ...(version === undefined ? {} : { version }),
      },
    },
  });
  await addWorker('large', 8192, true, [{ kind: 'codex', version: '2' }]);
  await addWorker('small', 1024, true, [
    { kind: 'deictic', version: '3' },
    { kind: 'codex', version: '1' },
  ]);
  await addWorker('of yesterday', 16_384);
  const placedOn = async (version?: string) => {
    const outcome = await store.sandboxes.reserve(wanting(version));
    return outcome.placed === undefined ? outcome.refusal : outcome.placed.worker_id;
  };
  expect(await placedOn('2')).toBe('large');
  expect(await placedOn('1')).toBe('small');
  expect(await placedOn('1')).toBe('small');
  expect(await placedOn('1')).toBe('no_capacity');
  expect(await placedOn('3')).toBe('template_not_available');
  expect(await placedOn()).toBe('of yesterday');
});

test('never reserves more than a worker’s memory under concurrency', async () => {
  await addWorker('a', 2048);
  await addWorker('b', 2048);
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, () => store.sandboxes.reserve(request())),
  );
  expect(outcomes.filter((outcome) => outcome.placed)).toHaveLength(8);
  expect(outcomes.filter((outcome) => outcome.placed === undefined)).toHaveLength(12);
  expect(await reserved('a')).toBe(2048);
  expect(await reserved('b')).toBe(2048);
});

test('never exceeds the tenant’s limit under concurrency', async () => {
  await addWorker('w', 100_000);
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, () => store.sandboxes.reserve(request())),
  );
  expect(outcomes.filter((outcome) => outcome.placed)).toHaveLength(50);
  expect(outcomes.find((outcome) => !outcome.placed)).toEqual({ refusal: 'tenant_limit' });
});

test('chooses a worker without free memory only when no other fits', async () => {
  await addWorker('short', 8192);
  await addWorker('roomy', 2048);
  await store.workers.heartbeat('short', {
    capacity: { vcpu: 2, memory_mib: 8192, disk_mib: 10_000 },
    free: { memory_mib: 0, disk_mib: 0 },
    templates: [{ template: 'standard', image: 'i', ready: true }],
    sandboxes: [],
  });
  const placed = [];
  for (let count = 0; count < 5; count += 1) placed.push((await place()).worker_id);
  expect(placed).toEqual(['roomy', 'roomy', 'roomy', 'roomy', 'short']);
});

test('gives the reason when placement fails', async () => {
  expect(await store.sandboxes.reserve(request())).toEqual({ refusal: 'no_workers' });
  await addWorker('w', 1024, false);
  expect(await store.sandboxes.reserve(request())).toEqual({ refusal: 'template_not_available' });
  await addWorker('w', 1024);
  expect(await store.sandboxes.reserve(request({ memory_mib: 4096 }))).toEqual({
    refusal: 'no_capacity',
  });
  await client.query(`update workers set heartbeat_at = now() - interval '1 minute'`);
  expect(await store.sandboxes.reserve(request())).toEqual({ refusal: 'no_workers' });
});

test('places again on another worker with the next generation', async () => {
  await addWorker('a', 4096);
  const first = await place();
  await addWorker('b', 2048);
  const again = await store.sandboxes.placeAgain(first, ['a']);
  expect(again.placed).toMatchObject({
    worker_id: 'b',
    generation: 2,
    state: 'creating',
    placement: first.placement,
  });
  expect([await reserved('a'), await reserved('b')]).toEqual([0, 512]);
  expect(await store.sandboxes.placeAgain(first, [])).toEqual({
    refusal: 'superseded',
  });
  expect([await reserved('a'), await reserved('b')]).toEqual([0, 512]);
});

test('ends a sandbox exactly once and releases its memory', async () => {
  await addWorker('w', 4096);
  const sandbox = await place();
  const ends = await Promise.all(
    Array.from({ length: 5 }, () =>
      store.sandboxes.end({ vmId: sandbox.vm_id, generation: 1, reason: 'deleted' }),
    ),
  );
  expect(ends.filter((row) => row !== undefined)).toHaveLength(1);
  expect(await reserved('w')).toBe(0);
  const tenant = await store.tenants.find(TENANT);
  expect(tenant?.active_sandboxes).toBe(0);
  expect(await store.sandboxes.end({ vmId: sandbox.vm_id, reason: 'deleted' })).toBeUndefined();
});

test('does not end another generation', async () => {
  await addWorker('w', 4096);
  const sandbox = await place();
  expect(
    await store.sandboxes.end({ vmId: sandbox.vm_id, generation: 2, reason: 'deleted' }),
  ).toBeUndefined();
});

test('forgets only sandboxes that were never started', async () => {
  await addWorker('w', 4096);
  const started = await place();
  const unstarted = await place();
  await store.sandboxes.applyReports('w', [report(started.vm_id)]);
  expect(await store.sandboxes.forget(started.vm_id, 1)).toBeUndefined();
  expect(await store.sandboxes.forget(unstarted.vm_id, 1)).toBeDefined();
  expect(await store.sandboxes.find(TENANT, unstarted.vm_id)).toBeUndefined();
  expect(await reserved('w')).toBe(512);
});

test('counters stay correct under concurrent creates and ends', async () => {
  await addWorker('w', 100_000);
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      const sandbox = await place();
      await store.sandboxes.end({ vmId: sandbox.vm_id, reason: 'deleted' });
    }),
  );
  expect(await reserved('w')).toBe(0);
  expect((await store.tenants.find(TENANT))?.active_sandboxes).toBe(0);
});

test('applies reports of legal transitions and ignores others', async () => {
  await addWorker('w', 4096);
  const { vm_id } = await place();
  const apply = async (changes: Partial<WorkerSandbox>) =>
    (await store.sandboxes.applyReports('w', [report(vm_id, changes)]))[0]?.state;
  expect(await apply({ state: 'booting' })).toBe('booting');
  expect(await apply({ state: 'creating' })).toBeUndefined();
  expect(await apply({ state: 'running', host_port: 2222 })).toBe('running');
  expect(await apply({ state: 'booting' })).toBeUndefined();
  expect(await apply({ state: 'paused' })).toBe('paused');
  expect(await apply({ state: 'running' })).toBe('running');
  expect(await apply({ state: 'stopping', generation: 2 })).toBeUndefined();
  expect(await store.sandboxes.applyReports('other', [report(vm_id)])).toEqual([]);
  await store.sandboxes.end({ vmId: vm_id, reason: 'deleted' });
  expect(await apply({ state: 'running' })).toBeUndefined();
});

test('a late report does not undo a newer one', async () => {
  await addWorker('w', 4096);
  const { vm_id } = await place();
  await store.sandboxes.applyReports('w', [report(vm_id, { state: 'paused', revision: 7 })]);
  expect(
    await store.sandboxes.applyReports('w', [report(vm_id, { state: 'running', revision: 6 })]),
  ).toEqual([]);
  expect(
    await store.sandboxes.applyReports('w', [report(vm_id, { state: 'running', revision: 8 })]),
  ).toHaveLength(1);
});

test('shows a tenant only its own sandboxes, and ended ones for a limited time', async () => {
  await addWorker('w', 4096);
  await store.tenants.findOrCreate('bob@example.com', 'usr_2');
  const { vm_id } = await place();
  expect(await store.sandboxes.find(TENANT, vm_id)).toBeDefined();
  expect(await store.sandboxes.find('usr_2', vm_id)).toBeUndefined();
  await store.sandboxes.end({ vmId: vm_id, reason: 'deleted' });
  expect(await store.sandboxes.find(TENANT, vm_id)).toMatchObject({ end_reason: 'deleted' });
  await client.query(`update sandboxes set ended_at = now() - interval '16 minutes'`);
  expect(await store.sandboxes.find(TENANT, vm_id)).toBeUndefined();
  expect(await store.sandboxes.list(TENANT)).toEqual([]);
});

test('lists live sandboxes and the last ended ones, however many ended, without reading old ones', async () => {
  await addWorker('w', 4096);
  const live = await place();
  const { vm_id } = await place();
  await store.sandboxes.end({ vmId: vm_id, reason: 'deleted' });
  const copies = async (prefix: string, count: number, age: string) =>
    client.query(`
      create temp table copies as select * from sandboxes where vm_id = '${vm_id}';
      insert into sandboxes select (jsonb_populate_record(copies, jsonb_build_object(
          'vm_id', '${prefix}' || n, 'ended_at', now() - interval '${age}' - n * interval '1 ms'))).*
        from copies, generate_series(1, ${count}) n;
      drop table copies;`);
  await copies('vm_recent_', 150, '1 minute');
  await copies('vm_old_', 20_000, '20 minutes');
  await client.query('analyze sandboxes');
  const listed = await store.sandboxes.list(TENANT);
  expect(listed.filter(({ state }) => state !== 'destroyed')).toMatchObject([
    { vm_id: live.vm_id },
  ]);
  const ended = listed.filter(({ state }) => state === 'destroyed').map((row) => row.vm_id);
  const newest = Array.from({ length: 99 }, (_, index) => `vm_recent_${index + 1}`);
  expect(ended.sort()).toEqual([vm_id, ...newest].sort());
  expect(await rowsRead(listStatement(TENANT))).toBeLessThan(300);
  const page = await store.sandboxes.list(TENANT, { limit: 1_000 });
  expect(page).toHaveLength(152);
  expect(await rowsRead(listStatement(TENANT, { limit: 1_000 }))).toBeLessThan(400);
});

test('finds many sandboxes concurrently', async () => {
  await addWorker('w', 100_000);
  const placed = await Promise.all(Array.from({ length: 10 }, () => place()));
  const found = await Promise.all(placed.map((row) => store.sandboxes.find(TENANT, row.vm_id)));
  expect(found.map((row) => row?.vm_id)).toEqual(placed.map((row) => row.vm_id));
});
