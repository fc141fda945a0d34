import { expect, test, vi } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { MemoryHost } from '../../test/memory-host.ts';

const time = vi.hoisted(() => ({ sleep: async (_ms: number): Promise<void> => undefined }));

vi.mock('@svc/service-kit/concurrency', async (original) => ({
  ...(await original<object>()),
  sleep: (ms: number) => time.sleep(ms),
}));

test('the reaper makes a pass at once and every ten seconds, also after one that took long', async () => {
  const clock = new ManualClock();
  clock.advance(5_000);
  const { reaper } = new CoreHarness(new MemoryHost(), { clock });
  const stop = new AbortController();
  const passes: number[] = [];
  /** How long each pass keeps the process busy. */
  const busyMs = [0, 3_000, 25_000, 0, 0];
  vi.spyOn(reaper, 'pass').mockImplementation(() => {
    passes.push(clock.monotonic());
    clock.advance(busyMs[passes.length - 1] ?? 0);
  });
  const sleeps: number[] = [];
  time.sleep = async (ms) => {
    sleeps.push(ms);
    clock.advance(ms);
    if (sleeps.length > busyMs.length) stop.abort();
  };
  reaper.begin();
  await reaper.run(stop.signal);
  // The pass that is late comes at once, and none is made up for.
  expect(passes).toEqual([5_000, 15_000, 25_000, 50_000, 60_000, 70_000]);
  expect(sleeps).toEqual([10_000, 7_000, 0, 10_000, 10_000, 10_000]);
});

test('the reaper makes no pass before it has begun', async () => {
  const { reaper } = new CoreHarness(new MemoryHost(), { clock: new ManualClock() });
  const pass = vi.spyOn(reaper, 'pass');
  const stop = new AbortController();
  const running = reaper.run(stop.signal);
  stop.abort();
  await running;
  expect(pass).not.toHaveBeenCalled();
});
