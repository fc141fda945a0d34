import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReportUsageResponse, UsageSample } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';
import { silentLogger } from '../../test/silent-logger.ts';
import { adoptVms } from '../adoption/adopt.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { MeterFiles } from './meter-files.ts';
import { Metering } from './metering.ts';

const NEVER = new AbortController().signal;
const HOUR = 3_600_000;

/** What a control plane keeps: per sandbox, the last accepted sample. */
class LedgerDouble {
  readonly received: UsageSample[] = [];
  readonly last = new Map<string, UsageSample>();
  isAway = false;

  async reportUsage(samples: readonly UsageSample[]): Promise<ReportUsageResponse> {
    if (this.isAway) throw new Error('no control plane');
    this.received.push(...samples);
    for (const sample of samples) {
      if (sample.seq > (this.last.get(sample.vm_id)?.seq ?? 0)) this.last.set(sample.vm_id, sample);
    }
    return { accepted: samples.length, known: 0, refused: [] };
  }
}

let directory: string;
let clock: ManualClock;
let host: MemoryHost;
let core: CoreHarness;
let ledger: LedgerDouble;
let metering: Metering;
let faults: unknown[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-metering-'));
  clock = new ManualClock(Date.parse('2026-01-01T10:00:00.000Z'));
  host = new MemoryHost();
  core = new CoreHarness(host, {
    clock,
    beforeDestroy: (sandbox) => metering.saveSample(sandbox),
  });
  ledger = new LedgerDouble();
  faults = [];
  metering = make();
});

afterEach(() => rm(directory, { recursive: true }));

function make(files = new MeterFiles(join(directory, 'usage')), bootId = 'boot-1'): Metering {
  return new Metering({
    registry: core.registry,
    files,
    client: ledger,
    bootId,
    clock,
    logger: silentLogger,
    onFault: (error) => faults.push(error),
  });
}

/** Measures and reports as every ten seconds. */
const pass = () => metering.pass(true, NEVER);

async function create(): Promise<Sandbox> {
  const created_at = new Date(clock.wall()).toISOString();
  return core.creator.create(placement({ created_at }), NEVER);
}

/** A later worker process, after the machine's worker was killed: it finds the VMs that are alive. */
async function restart(vms = host.live): Promise<void> {
  host = new MemoryHost(vms);
  core = new CoreHarness(host, { clock });
  await adoptVms(
    {
      microvms: host,
      registry: core.registry,
      pool: core.pool,
      capacity: core.capacity,
      images: () => host.images(),
      clock,
      logger: silentLogger,
      onChange: () => undefined,
      onFault: (error) => faults.push(error),
      beforeDestroy: async () => undefined,
      mountWorkspace: () => undefined,
      adoptAgent: async () => undefined,
    },
    NEVER,
  );
  metering = make();
}

function only(): Sandbox {
  const [sandbox] = core.registry.all();
  if (sandbox === undefined) throw new Error('no sandbox');
  return sandbox;
}

const saved = () => readdir(join(directory, 'usage'));

describe('the usage of a sandbox', () => {
  it('begins when it is ready: what its VM used in the pool is not part of it', async () => {
    host.onRestored = (vm) => {
      vm.cpu = 120;
    };
    const sandbox = await create();
    host.vmOf(sandbox.id).cpu = 121.25;
    clock.advance(10_000);
    await pass();
    expect(ledger.received).toEqual([
      {
        vm_id: sandbox.id,
        generation: 1,
        seq: 1,
        age_ms: 0,
        cpu_ms: 1_250,
        wall_ms: 10_000,
        input_tokens: 0,
        output_tokens: 0,
        tool_calls: 0,
      },
    ]);
  });

  it('ends with its last counters, reported until the control plane has them, and then forgotten', async () => {
    const sandbox = await create();
    sandbox.usage.addTokens({ input_tokens: 5, output_tokens: 2 });
    await pass();
    host.vmOf(sandbox.id).cpu += 3;
    sandbox.usage.addToolCall();
    clock.advance(4_000);
    ledger.isAway = true;
    await sandbox.end('deleted');
    await pass();
    clock.advance(60_000);
    await pass();
    ledger.isAway = false;
    await pass();
    const final = {
      cpu_ms: 3_000,
      wall_ms: 4_000,
      input_tokens: 5,
      output_tokens: 2,
      tool_calls: 1,
    };
    expect(ledger.last.get(sandbox.id)).toMatchObject({ ...final, age_ms: 60_000 });
    await pass();
    await pass();
    expect(await saved()).toEqual([]);
    const count = ledger.received.length;
    await pass();
    expect(ledger.received).toHaveLength(count);
  });

  it('does not depend on the wall clock', async () => {
    const sandbox = await create();
    ledger.isAway = true;
    clock.advance(10_000);
    await pass();
    clock.stepWall(-7 * 24 * HOUR);
    clock.advance(10_000);
    await pass();
    clock.stepWall(14 * 24 * HOUR);
    clock.advance(10_000);
    ledger.isAway = false;
    await pass();
    expect(ledger.received.map(({ wall_ms, age_ms }) => [wall_ms, age_ms])).toEqual([
      [10_000, 20_000],
      [20_000, 10_000],
      [30_000, 0],
    ]);
    expect(ledger.last.get(sandbox.id)?.wall_ms).toBe(30_000);
  });
});

it('keeps one sample per hour while the control plane is away, and catches up in order', async () => {
  await create();
  ledger.isAway = true;
  for (let minute = 0; minute < 90; minute += 1) {
    clock.advance(60_000);
    await pass();
  }
  ledger.isAway = false;
  await pass();
  expect(ledger.received.map(({ wall_ms, age_ms }) => [wall_ms / 60_000, age_ms / 60_000])).toEqual(
    [
      [59, 31],
      [90, 0],
    ],
  );
  await pass();
  expect(ledger.received).toHaveLength(2);
});

describe('after a restart of the worker', () => {
  it('continues the counters, and numbers samples on', async () => {
    const sandbox = await create();
    sandbox.usage.addTokens({ input_tokens: 100, output_tokens: 10 });
    sandbox.usage.addToolCall();
    clock.advance(10_000);
    await pass();
    clock.advance(30_000);
    host.vmOf(sandbox.id).cpu += 2;
    await restart();
    only().usage.addTokens({ input_tokens: 1, output_tokens: 1 });
    await pass();
    expect(ledger.received.at(-1)).toMatchObject({
      seq: 2,
      cpu_ms: 2_000,
      wall_ms: 40_000,
      input_tokens: 101,
      output_tokens: 11,
      tool_calls: 1,
    });
  });

  it('counts tokens that were counted, but not yet reported, when it was killed', async () => {
    const sandbox = await create();
    const stop = new AbortController();
    const run = metering.run(stop.signal);
    await expect.poll(() => ledger.received.length).toBe(0);
    sandbox.usage.addTokens({ input_tokens: 7, output_tokens: 3 });
    metering.wake();
    await expect.poll(() => saved().catch(() => [])).toHaveLength(1);
    await restart();
    await pass();
    expect(ledger.last.get(sandbox.id)).toMatchObject({ input_tokens: 7, output_tokens: 3 });
    stop.abort();
    await run;
  });

  it('reports what a sandbox used whose VM has ended in the meantime', async () => {
    const sandbox = await create();
    ledger.isAway = true;
    clock.advance(10_000);
    host.vmOf(sandbox.id).cpu += 1;
    await pass();
    await restart([]);
    ledger.isAway = false;
    await pass();
    expect(ledger.last.get(sandbox.id)).toMatchObject({ cpu_ms: 1_000, wall_ms: 10_000 });
    await pass();
    expect(await saved()).toEqual([]);
  });

  it('reports a sandbox that ended between two passes, the last of which never came', async () => {
    await pass();
    const sandbox = await create();
    sandbox.usage.addToolCall();
    clock.advance(4_000);
    host.vmOf(sandbox.id).cpu += 0.5;
    await sandbox.end('deleted');
    await restart([]);
    await pass();
    expect(ledger.last.get(sandbox.id)).toMatchObject({
      cpu_ms: 500,
      wall_ms: 4_000,
      tool_calls: 1,
    });
  });

  it('gives samples their age by the wall clock after the machine has booted', async () => {
    await create();
    ledger.isAway = true;
    clock.advance(10_000);
    await pass();
    await restart([]);
    clock = new ManualClock(clock.wall() + HOUR);
    metering = make(undefined, 'boot-2');
    ledger.isAway = false;
    await pass();
    expect(ledger.received).toMatchObject([{ wall_ms: 10_000, age_ms: HOUR }]);
  });

  it('leaves everything as it is if the start failed before it knew its sandboxes', async () => {
    await create();
    clock.advance(10_000);
    await pass();
    core = new CoreHarness(new MemoryHost(), { clock });
    await make().flush(5_000);
    expect(await saved()).toHaveLength(1);
    expect(ledger.received).toHaveLength(1);
  });

  it('removes a file that it cannot read, and says so', async () => {
    await create();
    await pass();
    await writeFile(join(directory, 'usage', 'torn.json'), '{"version":1,"vm_');
    await restart();
    await pass();
    expect(await saved()).toHaveLength(1);
    expect(faults).toEqual([]);
  });
});

it('sends no sample before it is saved, since a crash could give its number to another', async () => {
  class FullDisk extends MeterFiles {
    isFull = true;
    override async save(...state: Parameters<MeterFiles['save']>): Promise<void> {
      if (this.isFull) throw new Error('ENOSPC');
      await super.save(...state);
    }
  }
  const files = new FullDisk(join(directory, 'usage'));
  metering = make(files);
  await create();
  clock.advance(10_000);
  await pass();
  await pass();
  expect(ledger.received).toEqual([]);
  expect(faults).toHaveLength(1);
  files.isFull = false;
  clock.advance(10_000);
  await pass();
  expect(ledger.received).toMatchObject([{ wall_ms: 20_000 }]);
});
