import type { UsageSample, WorkerSandbox } from '@svc/contract';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../../test/test-postgres.ts';
import { openStore, type Store } from '../../store.ts';
import { verifyBilling } from '../../verify-billing.ts';
import type { PriceTable } from './price.ts';

const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 1_000 };
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

test('the time after the end of a sandbox costs nothing, however long its worker was cut off', async () => {
  const vm = await place(10);
  await ingest(sample(vm, 1, { wall_ms: 30 * MINUTE }));
  await store.sandboxes.end({ vmId: vm, reason: 'worker_lost' });
  await client.query(`update sandboxes set ended_at = placed_at + interval '1 hour'`);
  const late = [
    sample(vm, 2, { wall_ms: 9 * 60 * MINUTE }),
    sample(vm, 3, { wall_ms: 10 * 60 * MINUTE }),
  ];
  expect(await ingest(...late)).toEqual(['accepted', 'accepted']);
  const { records, meters } = await totals();
  expect(records).toMatchObject({ wall_ms: 60 * MINUTE, cpu_ms: 3_003, tool_calls: 3 });
  expect(meters).toEqual(records);
});

test('the last usage counts although the clock of the worker is behind', async () => {
  const vm = await place();
  expect(await ingest(sample(vm, 1, { wall_ms: 119 * MINUTE }))).toEqual(['accepted']);
  const endedAt = new Date(Date.now() - 10 * MINUTE).toISOString();
  await store.sandboxes.end({ vmId: vm, reason: 'idle_timeout', endedAt, endAgeMs: 1_000 });
  const last = { wall_ms: 120 * MINUTE - 2_000, cpu_ms: 120 * MINUTE * 5 };
  expect(await ingest(sample(vm, 2, last))).toEqual(['accepted']);
  expect((await totals()).records).toMatchObject(last);
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

describe('a worker cannot raise the bounds of what its sandboxes used', () => {
  const HUGE = 2 ** 31 - 1;
  const vcpusOf = async (vm: string): Promise<unknown> =>
    (await client.query('select vcpu from sandboxes where vm_id = $1', [vm])).rows[0].vcpu;

  function running(vm_id: string, vcpu: number): WorkerSandbox {
    return {
      vm_id,
      generation: 1,
      tenant_id: TENANT,
      template: 'standard',
      state: 'running',
      vcpu,
      cpu_fraction: 1,
      memory_mib: 512,
      disk_mib: 2048,
      rootfs: '',
      host_port: 1,
      endpoint: '',
      created_at: new Date().toISOString(),
      active_connections: 0,
      cpu_seconds: 0,
    };
  }

  test('by reporting more processors than the sandbox was placed with', async () => {
    const vm = await place();
    await store.sandboxes.applyReports('w', [running(vm, HUGE)]);
    expect(await vcpusOf(vm)).toBe(1);
    expect(await ingest(sample(vm, 1, { cpu_ms: 11 * 60 * MINUTE }))).toEqual(['implausible']);
    expect(await store.sandboxes.applyReports('w', [running(vm, HUGE)])).toEqual([]);
  });

  test('by reporting the processors of a sandbox that was placed without a number', async () => {
    const vm = await place();
    await client.query('update sandboxes set vcpu = null');
    await store.sandboxes.applyReports('w', [running(vm, HUGE)]);
    expect(await vcpusOf(vm)).toBe(8);
    await store.sandboxes.applyReports('w', [running(vm, 2)]);
    expect(await vcpusOf(vm)).toBe(8);
  });

  test('with a number of processors that an earlier version stored', async () => {
    const vm = await place();
    await client.query('update sandboxes set vcpu = $1', [HUGE]);
    expect(await ingest(sample(vm, 1, { cpu_ms: 23 * 60 * MINUTE }))).toEqual(['accepted']);
    expect(await ingest(sample(vm, 2, { cpu_ms: 25 * 60 * MINUTE }))).toEqual(['implausible']);
  });

  test('by going on after their end', async () => {
    const vm = await place(10);
    await store.sandboxes.end({ vmId: vm, reason: 'deleted' });
    await client.query(`update sandboxes set ended_at = placed_at + interval '1 hour'`);
    // Five threads, and five minutes for a worker that was cut off and for clocks.
    const most = { cpu_ms: 65 * MINUTE * 5, tool_calls: 65 * MINUTE };
    expect(await ingest(sample(vm, 1, most))).toEqual(['accepted']);
    const names = ['cpu_ms', 'input_tokens', 'output_tokens', 'tool_calls'] as const;
    for (const name of names) {
      const late = { ...most, [name]: 10 * 60 * MINUTE * (name.endsWith('tokens') ? 1_000 : 1) };
      expect(await ingest(sample(vm, 2, late)), name).toEqual(['implausible']);
    }
  });
});

describe('the number of records does not grow', () => {
  const count = async () => (await client.query('select from usage_records')).rowCount;

  test('with samples that count nothing new', async () => {
    const vm = await place();
    const same = Array.from({ length: 500 }, (_, n) => sample(vm, 1, { seq: n + 1 }));
    expect(new Set(await ingest(...same.slice(0, 499)))).toEqual(new Set(['accepted']));
    expect(await ingest(...same.slice(499))).toEqual(['accepted']);
    expect(await count()).toBe(1);
    expect(await ingest(sample(vm, 500, { cpu_ms: 2_000 }))).toEqual(['known']);
    expect(await ingest(sample(vm, 501))).toEqual(['accepted']);
    const { records, days, meters } = await totals();
    expect(records).toMatchObject({ cpu_ms: 501 * 1_001, tool_calls: 501 });
    expect(days).toEqual(records);
    expect(meters).toEqual(records);
  });

  test('with a first sample of nothing, which counts the sandbox, and what follows it', async () => {
    const vm = await place();
    const nothing = { cpu_ms: 0, wall_ms: 0, input_tokens: 0, output_tokens: 0, tool_calls: 0 };
    for (const seq of [1, 2, 3]) await ingest(sample(vm, seq, nothing));
    expect(await count()).toBe(1);
    expect((await client.query('select sandboxes from usage_days')).rows).toEqual([
      { sandboxes: 1 },
    ]);
  });

  test('with the samples of a report beyond one per sandbox and day', async () => {
    const [vm, other] = [await place(47), await place(47)];
    const batch = Array.from({ length: 20 }, (_, n) => {
      const age_ms = n < 10 ? 24 * 60 * MINUTE : 0;
      return [sample(vm, n + 1, { age_ms, cpu_ms: 3 * n }), sample(other, n + 1, { age_ms })];
    }).flat();
    expect(new Set(await ingest(...batch))).toEqual(new Set(['accepted']));
    const { rows } = await client.query(
      `select seq::int, cpu_ms::int, tool_calls::int from usage_records where vm_id = $1 order by seq`,
      [vm],
    );
    expect(rows).toEqual([
      { seq: 10, cpu_ms: 27, tool_calls: 10 },
      { seq: 20, cpu_ms: 30, tool_calls: 10 },
    ]);
    expect(await count()).toBe(4);
    const { records, days, meters } = await totals();
    expect(days).toEqual(records);
    expect(meters).toEqual(records);
    expect(new Set(await ingest(...batch))).toEqual(new Set(['known']));
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

describe('the records of a sandbox that has ended', () => {
  const NEVER = new AbortController().signal;

  const recordsOf = async (vmId: string) =>
    (
      await client.query(
        `select seq::int, used_at::text, cpu_ms::int from usage_records where vm_id = $1
         order by seq`,
        [vmId],
      )
    ).rows;

  const end = (vmId: string) =>
    client.query(`update sandboxes set ended_at = now() - interval '2 days' where vm_id = $1`, [
      vmId,
    ]);

  async function post(): Promise<void> {
    while ((await store.billing.postUsage(TENANT, 100)) > 0);
  }

  test('become one for each day, with the same sums', async () => {
    const vm = await place(100);
    const lasting = await place();
    const samples = Array.from({ length: 6 }, (_, index) =>
      sample(vm, index + 1, { age_ms: (6 - index) * 12 * 60 * MINUTE }),
    );
    for (const one of [...samples, sample(lasting, 1), sample(lasting, 2)]) await ingest(one);
    await post();
    await end(vm);
    const before = await totals();
    expect(await recordsOf(vm)).toHaveLength(6);
    const days = new Set((await recordsOf(vm)).map(({ used_at }) => used_at.slice(0, 10)));
    expect(await store.usage.foldRecords(3_600, 10, NEVER)).toBe(1);
    expect((await recordsOf(vm)).map(({ used_at }) => used_at.slice(0, 10))).toEqual([...days]);
    expect(await recordsOf(lasting)).toHaveLength(2);
    expect(await totals()).toEqual(before);
    expect(await verifyBilling(postgres.url)).toEqual(
      expect.not.arrayContaining([expect.objectContaining({ differences: [expect.anything()] })]),
    );
    expect(await store.usage.foldRecords(3_600, 10, NEVER)).toBe(0);
  });

  test('stay as they are until they are posted, and are summed up again after a late one', async () => {
    const vm = await place(100);
    await ingest(sample(vm, 1), sample(vm, 2));
    await end(vm);
    expect(await store.usage.foldRecords(3_600, 10, NEVER)).toBe(0);
    await post();
    expect(await store.usage.foldRecords(3_600, 10, NEVER)).toBe(1);
    await ingest(sample(vm, 3));
    await post();
    expect(await store.usage.foldRecords(3_600, 10, NEVER)).toBe(1);
    expect(await recordsOf(vm)).toMatchObject([{ seq: 3, cpu_ms: 3_003 }]);
  });
});
