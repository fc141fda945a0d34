import { beforeEach, expect, test, vi } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';
import { silentLogger } from '../../test/silent-logger.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { DiskPressure } from './disk-pressure.ts';

const NEVER = new AbortController().signal;
const time = vi.hoisted(() => ({
  sleep: async (_ms: number): Promise<void> => undefined,
  /** Whether what has a deadline ends before it. */
  isInTime: async (_work: Promise<unknown>, _ms: number): Promise<boolean> => true,
}));

vi.mock('@svc/service-kit/concurrency', async (original) => ({
  ...(await original<object>()),
  sleep: (ms: number) => time.sleep(ms),
  settledWithin: (work: Promise<unknown>, ms: number) => time.isInTime(work, ms),
}));

let host: MemoryHost;
let core: CoreHarness;
let pressure: DiskPressure;

beforeEach(() => {
  host = new MemoryHost();
  core = new CoreHarness(host);
  time.isInTime = (work) => work.then(() => true);
  pressure = new DiskPressure({
    registry: core.registry,
    machine: host,
    logger: silentLogger,
    onFault: (error) => core.faults.push(error),
  });
});

async function create(usedMib: number, tenantId = 'usr_a'): Promise<Sandbox> {
  const sandbox = await core.creator.create({ ...placement(), tenant_id: tenantId }, NEVER);
  host.vmOf(sandbox.id).diskUsedMib = usedMib;
  return sandbox;
}

test('the disk is checked every second, also after a failure, until the signal aborts', async () => {
  const stop = new AbortController();
  const pass = vi.spyOn(pressure, 'pass');
  pass.mockRejectedValueOnce(new Error('no such disk'));
  const sleeps: number[] = [];
  time.sleep = async (ms) => {
    sleeps.push(ms);
    if (sleeps.length === 4) stop.abort();
  };
  await pressure.run(stop.signal);
  expect(sleeps).toEqual([1000, 1000, 1000, 1000]);
  expect(pass).toHaveBeenCalledTimes(3);
  expect(core.faults).toMatchObject([{ message: 'no such disk' }]);
  await pressure.run(stop.signal);
  expect(sleeps).toHaveLength(4);
});

test.each([
  [512, 512, 'running'],
  [511, 512, 'destroyed'],
  [511, 511, 'running'],
  [0, 511, 'running'],
])('with %i MiB free, a tenant with %i MiB has a sandbox %s', async (free, used, state) => {
  const sandbox = await create(used);
  host.diskMib = free;
  await pressure.pass();
  expect(sandbox.state).toBe(state);
});

test.each([
  ['in time', 128, true, 0],
  ['too slowly', 128, false, 1],
  ['on a disk with almost nothing left', 127, true, 1],
])('a sandbox that is saved %s', async (_how, free, isInTime, hurries) => {
  const sandbox = await create(600);
  const hurry = vi.spyOn(sandbox, 'hurryEnd');
  const limits: number[] = [];
  time.isInTime = async (work, ms) => {
    limits.push(ms);
    await work;
    return isInTime;
  };
  host.diskMib = free;
  await pressure.pass();
  expect(hurry).toHaveBeenCalledTimes(hurries);
  expect(sandbox.state).toBe('destroyed');
  if (free === 128) expect(limits).toContain(10_000);
});

test('sandboxes that already end, or that never ran, are left alone', async () => {
  const [ending, other] = [await create(900), await create(600)];
  vi.spyOn(ending, 'isEnding', 'get').mockReturnValue(true);
  vi.spyOn(other, 'hasRun', 'get').mockReturnValue(false);
  host.diskMib = 200;
  await pressure.pass();
  expect([ending.state, other.state]).toEqual(['running', 'running']);
});

test('a tenant is measured by the sum of its sandboxes', async () => {
  const large = await create(700, 'usr_b');
  const several = [await create(300), await create(200), await create(250)];
  host.diskMib = 200;
  await pressure.pass();
  expect(several.map(({ state }) => state)).toEqual(['destroyed', 'running', 'running']);
  expect(large.state).toBe('running');
});
