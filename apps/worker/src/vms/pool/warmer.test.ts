import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CoreHarness } from '../../../test/core-harness.ts';
import { MemoryHost, STANDARD } from '../../../test/memory-host.ts';
import type { MemoryMicrovm } from '../../../test/memory-microvm.ts';
import { placement } from '../../../test/placement.ts';

const NEVER = new AbortController().signal;
let directory: string;
let host: MemoryHost;
/** The file to which commands write a line when they begin, and another when they end. */
let log: string;
/** Commands that wait for this file. */
let gate: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-warmer-'));
  log = join(directory, 'log');
  gate = join(directory, 'gate');
  await appendFile(log, '');
  host = new MemoryHost();
});
afterEach(() => rm(directory, { recursive: true }));

const lines = async () => (await readFile(log, 'utf8')).split('\n').slice(0, -1);
const gated = () =>
  `echo begun >>${log}; until [ -e ${gate} ]; do sleep 0.01; done; echo ended >>${log}`;

/** A worker with a full pool of so many VMs, whose image has these commands. */
async function filled(count: number, ...idleWarmUp: string[]): Promise<CoreHarness> {
  host.currentImages = [{ ...STANDARD, idleWarmUp }];
  const core = new CoreHarness(host, { pool: { standard: count } });
  await core.fillPool();
  return core;
}

test('each idle VM is warmed up once, one at a time', async () => {
  const core = await filled(3, gated(), `echo second >>${log}`);
  await core.warmPoolWhile(async () => {
    await expect.poll(lines).toEqual(['begun']);
    await appendFile(gate, '');
    const each = ['begun', 'ended', 'second'];
    await expect.poll(lines).toEqual([...each, ...each, ...each]);
    await core.creator.create(placement(), NEVER);
    await core.fillPool();
    await expect.poll(lines).toEqual([...each, ...each, ...each, ...each]);
  });
});

test('a VM that is taken is left at once', async () => {
  const core = await filled(1, gated(), `echo second >>${log}`);
  await core.warmPoolWhile(async () => {
    await expect.poll(lines).toEqual(['begun']);
    const sandbox = await core.creator.create(placement(), NEVER);
    const vm = host.vmOf(sandbox.id);
    await expect.poll(() => vm.groups.size).toBe(0);
    await appendFile(gate, '');
    await core.fillPool();
    await expect.poll(lines).toEqual(['begun', 'begun', 'ended', 'second']);
  });
});

test('nothing begins while a caller waits', async () => {
  const core = await filled(1, `echo begun >>${log}`);
  const answered = Promise.withResolvers<void>();
  const other = core.foreground.run(() => answered.promise);
  const images = vi.spyOn(host, 'images');
  const exec = vi.spyOn(host.live[0] as MemoryMicrovm, 'exec');
  await core.warmPoolWhile(async () => {
    await expect.poll(() => images.mock.calls.length).toBe(1);
    // Enough for a command to begin if nothing held it up.
    await setImmediate();
    expect(exec).not.toHaveBeenCalled();
    answered.resolve();
    await other;
    await expect.poll(lines).toEqual(['begun']);
  });
});

test('a VM that cannot be warmed up stays in the pool, and is not tried again', async () => {
  const core = await filled(2, `echo begun >>${log}; exit 3`);
  await core.warmPoolWhile(async () => {
    await expect.poll(lines).toEqual(['begun', 'begun']);
    await core.creator.create(placement(), NEVER);
    await core.fillPool();
    await expect.poll(lines).toEqual(['begun', 'begun', 'begun']);
  });
  expect(core.pool.size('standard')).toBe(2);
});

test('a VM that dies meanwhile does not keep the others cold', async () => {
  const core = await filled(2, gated());
  await core.warmPoolWhile(async () => {
    await expect.poll(lines).toEqual(['begun']);
    host.live[0]?.die('crashed');
    await appendFile(gate, '');
    await core.fillPool();
    await expect
      .poll(async () => (await lines()).filter((line) => line === 'begun').length)
      .toBe(3);
  });
});
