import type { UsageSample } from '@svc/contract';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../../test/test-postgres.ts';
import { openStore, type Store } from '../../store.ts';
import type { PriceTable } from './price.ts';

const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 50 };
const TENANT = 'usr_1';
const PRICES: PriceTable = { cpuSecond: 14, gibSecond: 4, toolCall: 7 };
const MINUTE = 60_000;

let postgres: TestPostgres;
let store: Store;
/** A second control plane. */
let other: Store;
let client: pg.Client;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({ url: postgres.url, placement: PLACEMENT });
  other = await openStore({ url: postgres.url, placement: PLACEMENT });
  client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
});

afterAll(async () => {
  await client?.end();
  await other?.close();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await client.query('truncate workers, sandboxes, usage_records, usage_days cascade');
  await store.tenants.findOrCreate('ada@example.com', TENANT);
  await addWorker('w');
});

async function addWorker(workerId: string): Promise<void> {
  await store.workers.register({
    worker_id: workerId,
    url: 'https://127.0.0.1:1',
    certificate: '',
    version: '1',
    capacity: { vcpu: 8, memory_mib: 1_000_000, disk_mib: 1_000_000 },
    templates: [{ template: 'standard', image: 'i', ready: true }],
    sandboxes: [],
  });
}

let counter = 0;

/** Places a sandbox on worker `w`, a while ago by the database's clock. */
async function place(hoursAgo = 2, memoryMib = 512): Promise<string> {
  counter += 1;
  const vmId = `vm_${counter}`;
  await store.sandboxes.reserve({
    vmId,
    tenantId: TENANT,
    placement: {
      template: 'standard',
      size: { vcpu: 1, memory_mib: memoryMib },
      idle_timeout_seconds: 60,
      max_lifetime_seconds: 7200,
    },
    metadata: {},
    persistenceUrl: undefined,
  });
  await client.query(
    `update sandboxes set placed_at = now() - make_interval(hours => $2), worker_id = 'w'
     where vm_id = $1`,
    [vmId, hoursAgo],
  );
  return vmId;
}

function sample(vm_id: string, seq: number, changes: Partial<UsageSample> = {}): UsageSample {
  return {
    vm_id,
    generation: 1,
    seq,
    age_ms: 0,
    cpu_ms: seq * 1_001,
    wall_ms: seq * 10_000,
    input_tokens: seq * 10,
    output_tokens: seq * 5,
    tool_calls: seq,
    ...changes,
  };
}

const ingest = (...samples: UsageSample[]) => store.usage.ingest('w', samples, PRICES);

/** Sums of all records, and of all days, as numbers. */
async function totals() {
  const columns = ['cpu_ms', 'wall_ms', 'input_tokens', 'output_tokens', 'tool_calls']
    .concat('cost_microusd')
    .map((name) => `coalesce(sum(${name}), 0)::float8 as ${name}`)
    .join(', ');
  const sums = async (table: string) =>
    (await client.query(`select ${columns} from ${table}`)).rows[0];
  const records = await sums('usage_records');
  const days = await sums('usage_days');
  const meters = await sums('usage_meters');
  return { records, days, meters };
}

test('the records of a sandbox add up to its last counters, and so do the days', async () => {
  const vm = await place();
  for (const seq of [1, 2, 3]) expect(await ingest(sample(vm, seq))).toEqual(['accepted']);
  const { records, days, meters } = await totals();
  expect(records).toMatchObject({
    cpu_ms: 3_003,
    wall_ms: 30_000,
    input_tokens: 30,
    output_tokens: 15,
    tool_calls: 3,
  });
  expect(days).toEqual(records);
  expect(meters).toEqual(records);
});

test('costs are whole micro-dollars whose sum is the price of the last counters, rounded down once', async () => {
  const vm = await place();
  // 3 ms of CPU cost 0.042, 7 ms of 256 MiB cost 0.007: no record alone reaches a micro-dollar.
  for (let seq = 1; seq <= 90; seq += 1) {
    await ingest(sample(vm, seq, { cpu_ms: seq * 3, wall_ms: seq * 7, tool_calls: 0 }));
  }
  const exact = (270 * 14) / 1000 + (630 * 0.5 * 4) / 1000;
  expect((await totals()).records.cost_microusd).toBe(Math.floor(exact));
  const { rows } = await client.query('select cost_microusd from usage_records');
  expect(rows.every(({ cost_microusd }) => /^\d+$/.test(cost_microusd))).toBe(true);
});

describe('reports that are', () => {
  test('repeated change nothing', async () => {
    const vm = await place();
    const batch = [sample(vm, 1), sample(vm, 2)];
    expect(await ingest(...batch)).toEqual(['accepted', 'accepted']);
    const before = await totals();
    expect(await ingest(...batch)).toEqual(['known', 'known']);
    expect(await ingest(sample(vm, 2), sample(vm, 2))).toEqual(['known', 'known']);
    expect(await totals()).toEqual(before);
  });

  test('reordered give the same sums', async () => {
    const vm = await place();
    expect(await ingest(sample(vm, 3))).toEqual(['accepted']);
    expect(await ingest(sample(vm, 1), sample(vm, 2))).toEqual(['known', 'known']);
    expect(await ingest(sample(vm, 5), sample(vm, 4))).toEqual(['accepted', 'accepted']);
    expect((await totals()).records).toMatchObject({ cpu_ms: 5_005, tool_calls: 5 });
  });

  test('stored by two control planes at the same time count once', async () => {
    const vms = await Promise.all(Array.from({ length: 20 }, () => place()));
    // The first samples make the meters, the second ones find them.
    for (const seq of [1, 2]) {
      const batch = vms.map((vm) => sample(vm, seq));
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          (index % 2 === 0 ? store : other).usage.ingest(
            'w',
            index % 3 === 0 ? batch : batch.toReversed(),
            PRICES,
          ),
        ),
      );
      expect(outcomes.flat().filter((verdict) => verdict === 'accepted')).toHaveLength(20);
    }
    const { records, days } = await totals();
    expect(records).toMatchObject({ cpu_ms: 20 * 2_002, tool_calls: 40 });
    expect(days).toEqual(records);
  });
});

describe('refuses', () => {
  test.each([
    ['an unknown sandbox', { vm_id: 'vm_none' }, 'unknown_sandbox'],
    ['another generation', { generation: 2 }, 'unknown_sandbox'],
    ['more wall time than has passed', { wall_ms: 3 * 60 * MINUTE }, 'implausible'],
    ['more CPU time than its threads can use', { cpu_ms: 11 * 60 * MINUTE }, 'implausible'],
    ['a huge count', { input_tokens: Number.MAX_SAFE_INTEGER }, 'implausible'],
    ['a huge count of tool calls', { tool_calls: 1e9 }, 'implausible'],
    ['a counter that decreases', { seq: 3, cpu_ms: 1 }, 'decreasing'],
  ] as const)('%s, and accepts the others of the report', async (_name, changes, reason) => {
    const vm = await place();
    const honest = await place();
    await ingest(sample(vm, 1));
    expect(await ingest(sample(vm, 2, changes), sample(honest, 1))).toEqual([reason, 'accepted']);
    expect((await totals()).records).toMatchObject({ cpu_ms: 2_002, tool_calls: 2 });
  });

  test('the sandbox of another worker', async () => {
    const vm = await place();
    await addWorker('liar');
    expect(await store.usage.ingest('liar', [sample(vm, 1)], PRICES)).toEqual(['unknown_sandbox']);
    expect((await totals()).records.cpu_ms).toBe(0);
  });
});

test('keeps the day of samples that were taken before midnight, by the age that they have', async () => {
  const vm = await place(47);
  // Wherever in the day this runs, one of these is older than the last midnight, and the other is not.
  expect(await ingest(sample(vm, 1, { age_ms: 24 * 60 * MINUTE }), sample(vm, 2))).toEqual([
    'accepted',
    'accepted',
  ]);
  const { rows } = await client.query(
    `select max(day) over () - day as days_before, cpu_ms, sandboxes from usage_days order by day`,
  );
  expect(rows).toEqual([
    { days_before: 1, cpu_ms: '1001', sandboxes: 1 },
    { days_before: 0, cpu_ms: '1001', sandboxes: 0 },
  ]);
});

test('an age that no sample can have moves it at most to when the sandbox was placed', async () => {
  const vm = await place(1);
  await ingest(sample(vm, 1, { age_ms: Number.MAX_SAFE_INTEGER }));
  const { rows } = await client.query(
    'select used_at = placed_at as clamped from usage_records join sandboxes using (vm_id)',
  );
  expect(rows).toEqual([{ clamped: true }]);
});

test('accepts the last sample of a sandbox that has ended, and keeps the records when its row is removed', async () => {
  const vm = await place();
  await ingest(sample(vm, 1));
  await store.sandboxes.end({ vmId: vm, reason: 'deleted' });
  expect(await ingest(sample(vm, 2))).toEqual(['accepted']);
  await client.query('delete from sandboxes');
  expect(await ingest(sample(vm, 3))).toEqual(['unknown_sandbox']);
  expect((await totals()).records.cpu_ms).toBe(2_002);
});
