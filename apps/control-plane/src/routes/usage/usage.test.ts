import { addDays, type UsageSample } from '@svc/contract';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;
let owner: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start({ SVC_PRICE_TOOL_CALL_MICROUSD: '1000' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(prepare);

async function prepare(): Promise<void> {
  await harness.reset();
  owner = await harness.signUp();
  worker = await harness.addWorker('w1');
}

/** A running sandbox that was placed an hour ago. */
async function sandbox(json: object = {}): Promise<string> {
  const vmId = await harness.create(owner.key, json);
  await age(vmId);
  return vmId;
}

const age = (vmId: string) =>
  harness.sql.query(`update sandboxes set placed_at = now() - interval '1 hour' where vm_id = $1`, [
    vmId,
  ]);

function sample(vm_id: string, seq = 1, changes: Partial<UsageSample> = {}): UsageSample {
  return {
    vm_id,
    generation: 1,
    seq,
    age_ms: 0,
    cpu_ms: 1_500 * seq,
    wall_ms: 60_000 * seq,
    input_tokens: 100 * seq,
    output_tokens: 10 * seq,
    tool_calls: seq,
    ...changes,
  };
}

async function report(samples: unknown, from = worker, url = harness.plane.url) {
  const answer = await from.ask(url, 'POST', '/usage', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ samples }),
  });
  return { status: answer.status, body: await answer.json() };
}

const read = (path: string, key = owner.key) => harness.call('GET', path, { key });
const overview = async () => (await read('/v1/dashboard/overview', owner.token)).body;

async function today(): Promise<string> {
  const { rows } = await harness.sql.query<{ today: string }>(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today`,
  );
  return rows[0]?.today ?? '';
}

/** A day of the UTC calendar, that many days after today. */
type DayAfter = (days: number) => string;

/**
 * A test that records usage and reads what is kept of a day or month. If midnight UTC passes meanwhile, the two may be of
 * different days: then the test begins anew, a day before the next midnight.
 */
function withinOneDay(body: (day: DayAfter) => Promise<void>): () => Promise<void> {
  return async () => {
    const before = await today();
    try {
      await body((days) => addDays(before, days));
    } catch (error) {
      const after = await today();
      if (after === before) throw error;
      await prepare();
      await body((days) => addDays(after, days));
    }
  };
}

/** Moves all recorded usage of the tenant to another day. */
const moveDays = (days: number) =>
  harness.sql.query('update usage_days set day = day + $2::int where tenant_id = $1', [
    owner.tenantId,
    days,
  ]);

describe('a usage report', () => {
  test(
    'shows in every sum at once, and counts once when it is repeated',
    withinOneDay(async () => {
      const vmId = await sandbox({ memory_mib: 512 });
      expect(await report([sample(vmId)])).toEqual({
        status: 200,
        body: { accepted: 1, known: 0, refused: [] },
      });
      expect(await report([sample(vmId)])).toMatchObject({ body: { accepted: 0, known: 1 } });
      // 1.5 s × 14 + 60 s × 0.5 GiB × 4 + 1,000
      const cost = 1_141;
      expect((await read('/v1/usage')).body).toEqual({
        tenant_id: owner.tenantId,
        period: expect.stringMatching(/^\d{4}-\d{2}-01\.\.\d{4}-\d{2}-01$/),
        infra_usage: { cpu_seconds: 1.5, sandbox_count: 1, credits_used_usd: cost / 1e6 },
        credits: { balance_usd: expect.any(Number), auto_topup_enabled: false },
      });
      expect(await overview()).toEqual({
        sandbox_count: 1,
        input_tokens: 100,
        output_tokens: 10,
        cpu_seconds: 1.5,
        billable_tool_calls: 1,
      });
    }),
  );

  test(
    'refuses unbelievable samples one by one, logs them, and takes the others',
    withinOneDay(async () => {
      const vmId = await sandbox();
      const other = await harness.addWorker('liar');
      const lies = [
        sample(vmId, 2, { cpu_ms: -1 }),
        sample(vmId, 2, { cpu_ms: 1e15 }),
        sample(vmId, 2, { wall_ms: 7_200_000 }),
        sample(vmId, 2, { age_ms: -60_000 }),
        sample(vmId, 0),
        sample('vm_unknown'),
        sample(vmId, 2, { generation: 7 }),
        sample(vmId, 2, { input_tokens: 1.5 }),
        'nonsense',
        null,
        { ...sample(vmId, 2), cpu_ms: '1' },
        sample('vm_\u0000'),
      ];
      const answer = await report([...lies, sample(vmId)]);
      expect(answer).toMatchObject({ status: 200, body: { accepted: 1, known: 0 } });
      expect(answer.body).toMatchObject({
        refused: [
          { index: 0, reason: 'invalid' },
          { index: 1, reason: 'implausible' },
          { index: 2, reason: 'implausible' },
          { index: 3, reason: 'invalid' },
          { index: 4, reason: 'invalid' },
          { index: 5, reason: 'unknown_sandbox' },
          { index: 6, reason: 'unknown_sandbox' },
          { index: 7, reason: 'invalid' },
          { index: 8, reason: 'invalid' },
          { index: 9, reason: 'invalid' },
          { index: 10, reason: 'invalid' },
          { index: 11, reason: 'invalid' },
        ],
      });
      expect(await report([sample(vmId, 3, { cpu_ms: 1 })])).toMatchObject({
        body: { refused: [{ index: 0, reason: 'decreasing' }] },
      });
      expect(await report([sample(vmId, 9)], other)).toMatchObject({
        body: { refused: [{ index: 0, reason: 'unknown_sandbox' }] },
      });
      expect(await overview()).toMatchObject({ cpu_seconds: 1.5, billable_tool_calls: 1 });
      expect(harness.logLines.some((line) => line.includes('refused usage of a worker'))).toBe(
        true,
      );
    }),
  );

  test('that is no list of samples is 400', async () => {
    for (const samples of [[], 'x', Array.from({ length: 501 }, () => null)]) {
      expect(await report(samples)).toMatchObject({ status: 400 });
    }
  });

  test('needs the credential of a worker', async () => {
    for (const key of [undefined, owner.key, owner.token]) {
      const answer = await fetch(`${harness.plane.url}/internal/v1/usage`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({ samples: [sample('vm_1')] }),
      });
      expect(answer.status).toBe(401);
    }
  });

  test(
    'that two control planes take at once counts once',
    withinOneDay(async () => {
      const other = await harness.startAnother();
      try {
        const batch = await Promise.all(
          Array.from({ length: 5 }, async () => sample(await sandbox())),
        );
        const answers = await Promise.all(
          [harness.plane, other, harness.plane, other].map(({ url }) => report(batch, worker, url)),
        );
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
        expect(await overview()).toMatchObject({ sandbox_count: 5, cpu_seconds: 7.5 });
      } finally {
        await other.close();
      }
    }),
  );
});

test('when a sandbox ends, its records add up to its last counters, exactly', async () => {
  const vmId = await sandbox({ memory_mib: 256 });
  for (const seq of [1, 2, 3, 5]) await report([sample(vmId, seq, { cpu_ms: 1_337 * seq })]);
  await worker.event(harness.plane.url, worker.end(vmId, 'deleted'));
  const final = sample(vmId, 6, { cpu_ms: 9_001, wall_ms: 300_007, tool_calls: 6 });
  await report([final]);
  const { rows } = await harness.sql.query(
    `select sum(cpu_ms)::float8 as cpu_ms, sum(wall_ms)::float8 as wall_ms,
       sum(tool_calls)::float8 as tool_calls, sum(cost_microusd)::float8 as cost
     from usage_records where vm_id = $1`,
    [vmId],
  );
  const { cpu_ms, wall_ms, tool_calls } = final;
  const cost = Math.floor((9_001 * 14) / 1_000 + 300.007 * 0.25 * 4 + 6_000);
  expect(rows).toEqual([{ cpu_ms, wall_ms, tool_calls, cost }]);
  const list = await read('/v1/dashboard/sandboxes', owner.token);
  expect(list.body).toMatchObject({
    total: 1,
    sandboxes: [{ vm_id: vmId, state: 'destroyed', cpu_seconds: 9.001, cost_usd: cost / 1e6 }],
  });
});

describe('GET /v1/usage', () => {
  test('is of the current month only, and of the caller only', async () => {
    await report([sample(await sandbox())]);
    const stranger = await harness.signUp();
    expect((await read('/v1/usage', stranger.key)).body).toMatchObject({
      tenant_id: stranger.tenantId,
      infra_usage: { cpu_seconds: 0, sandbox_count: 0, credits_used_usd: 0 },
    });
    await moveDays(-31);
    expect((await read('/v1/usage')).body).toMatchObject({ infra_usage: { cpu_seconds: 0 } });
  });

  test('shows the balance and whether it is topped up', async () => {
    await harness.sql.query(
      `insert into billing_accounts (tenant_id, balance_cents, auto_topup) values ($1, 0, true)
       on conflict (tenant_id) do update set auto_topup = true`,
      [owner.tenantId],
    );
    await harness.sql.query(
      'update billing_accounts set balance_cents = -1234 where tenant_id = $1',
      [owner.tenantId],
    );
    expect((await read('/v1/usage')).body.credits).toEqual({
      balance_usd: -12.34,
      auto_topup_enabled: true,
    });
  });
});

describe('GET /v1/usage/history', () => {
  const history = async (query = '') => (await read(`/v1/usage/history${query}`)).body.entries;

  test(
    'has an entry for each of the last 30 days, without today',
    withinOneDay(async (day) => {
      const entries = (await history()) as { period_start: string }[];
      expect(entries.map(({ period_start }) => period_start)).toEqual(
        Array.from({ length: 30 }, (_, index) => day(index - 30)),
      );
      expect(entries[0]).toEqual({
        period_start: day(-30),
        period_end: day(-29),
        infra_usage: { cpu_seconds: 0, sandbox_count: 0, credits_used_usd: 0 },
        session_count: 0,
      });
    }),
  );

  test(
    'includes the first day and excludes the last',
    withinOneDay(async (day) => {
      await report([sample(await sandbox())]);
      await harness.addBundle(owner.key, 'llm', { LLM_API_KEY: 'k' });
      const { vmId } = await harness.startSession(owner.key);
      await age(vmId);
      await report([sample(vmId)]);
      await moveDays(-3);
      const days = async (from: number, to: number) =>
        ((await history(`?from=${day(from)}&to=${day(to)}`)) as Record<string, unknown>[]).filter(
          ({ session_count }) => session_count !== 0,
        );
      expect(await days(-3, -2)).toMatchObject([
        {
          period_start: day(-3),
          period_end: day(-2),
          infra_usage: { cpu_seconds: 3, sandbox_count: 2 },
          session_count: 1,
        },
      ]);
      expect(await days(-4, -3)).toEqual([]);
      expect(await days(-2, 1)).toEqual([]);
    }),
  );

  test('refuses dates that do not exist, and times that end before they begin', async () => {
    const queries = [
      'from=2026-02-30',
      'from=2025-02-29',
      'to=2026-13-01',
      'from=yesterday',
      'from=2026-1-1',
      'from=0000-01-01',
      'to=9999-12-31',
      'from=',
      'from=2026-01-01T00:00:00Z',
      'from=2026-01-02&to=2026-01-02',
      'from=2026-01-02&to=2026-01-01',
      'from=2999-12-31',
      'from=1999-01-01&to=2026-01-01',
    ];
    for (const query of queries) {
      expect(await read(`/v1/usage/history?${query}`), query).toMatchObject({
        status: 400,
        body: { code: 'validation_failed' },
      });
    }
  });

  test('takes a leap day', async () => {
    expect(await history('?from=2024-02-29&to=2024-03-01')).toMatchObject([
      { period_start: '2024-02-29', period_end: '2024-03-01' },
    ]);
  });
});

describe('GET /v1/dashboard/usage/daily', () => {
  const daily = (query: string) => read(`/v1/dashboard/usage/daily?${query}`, owner.token);

  test(
    'includes the first day and the last',
    withinOneDay(async (day) => {
      await report([sample(await sandbox())]);
      const none = { input_tokens: 0, output_tokens: 0, cpu_seconds: 0 };
      expect((await daily(`from=${day(-1)}&to=${day(0)}`)).body).toEqual({
        entries: [
          { day: day(-1), ...none },
          { day: day(0), input_tokens: 100, output_tokens: 10, cpu_seconds: 1.5 },
        ],
      });
      expect((await daily(`from=${day(0)}&to=${day(0)}`)).body.entries).toHaveLength(1);
    }),
  );

  test('needs two dates that exist, in order', async () => {
    const queries = [
      '',
      'from=2026-01-01',
      'to=2026-01-01',
      'from=2026-02-30&to=2026-03-01',
      'from=2026-03-02&to=2026-03-01',
      'from=2000-01-01&to=2026-01-01',
    ];
    for (const query of queries) {
      expect(await daily(query), query).toMatchObject({
        status: 400,
        body: { code: 'validation_failed' },
      });
    }
  });
});

describe('GET /v1/dashboard/sandboxes', () => {
  const list = (query = '') => read(`/v1/dashboard/sandboxes${query}`, owner.token);

  test('lists sandboxes newest first, by pages, with what they used', async () => {
    await harness.addBundle(owner.key, 'llm', { LLM_API_KEY: 'k' });
    const first = await sandbox();
    const session = await harness.startSession(owner.key);
    await age(session.vmId);
    await report([sample(session.vmId, 2)]);
    const all = await list();
    expect(all.body).toMatchObject({
      total: 2,
      sandboxes: [
        {
          vm_id: session.vmId,
          chat_session_id: session.id,
          template: 'standard',
          agent: 'deictic',
          state: 'running',
          cpu_seconds: 3,
          input_tokens: 200,
          output_tokens: 20,
          duration_seconds: expect.any(Number),
          cost_usd: expect.any(Number),
        },
        { vm_id: first, cpu_seconds: 0, cost_usd: 0 },
      ],
    });
    expect(Object.keys((all.body.sandboxes as object[])[1] ?? {})).not.toContain('ended_at');
    expect((await list('?limit=1&offset=1')).body).toMatchObject({
      total: 2,
      sandboxes: [{ vm_id: first }],
    });
    expect((await list('?offset=2')).body).toEqual({ sandboxes: [], total: 2 });
    const stranger = await harness.signUp();
    expect((await read('/v1/dashboard/sandboxes', stranger.token)).body).toEqual({
      sandboxes: [],
      total: 0,
    });
  });

  test('refuses pages that cannot be', async () => {
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'offset=-1', 'offset=1.5']) {
      expect(await list(`?${query}`), query).toMatchObject({
        status: 400,
        body: { code: 'validation_failed' },
      });
    }
  });
});
