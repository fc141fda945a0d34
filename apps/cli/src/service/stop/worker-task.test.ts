import { readFile } from 'node:fs/promises';
import { loadServiceConfig } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import { Shutdown } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { stopTimeoutMs } from './stop-process.ts';
import { endMsOf, workerTask } from './worker-task.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** The names of the tasks that failed when a worker took `ms` to close. */
async function stopTaking(ms: number, keepSandboxes: boolean, settings = {}) {
  const shutdown = new Shutdown(createLogger({ level: 'silent' }));
  const close = () => new Promise<void>((resolve) => setTimeout(resolve, ms));
  shutdown.add(workerTask(loadServiceConfig(settings), () => keepSandboxes, close));
  const failed = shutdown.run('test');
  await vi.advanceTimersByTimeAsync(ms);
  return failed;
}

test.each([
  [90, {}],
  [3_600, { SVC_WORKER_END_SECONDS: '3600' }],
])(
  'a worker that ends its sandboxes has %i s for them, and time to stop',
  async (seconds, settings) => {
    expect(await stopTaking((seconds + 30) * 1000, false, settings)).toEqual([]);
  },
);

test('a worker that keeps its sandboxes is not waited for as long', async () => {
  expect(await stopTaking(90_000, true)).toEqual(['worker']);
});

test('a stop waits for a worker that ends its sandboxes, and so does its unit with the default settings', async () => {
  const config = loadServiceConfig({});
  const hour = { workerEndSeconds: 3_600 };
  expect(stopTimeoutMs({ end_ms: endMsOf(hour) })).toBeGreaterThan(
    workerTask(
      hour,
      () => false,
      async () => undefined,
    ).deadlineMs,
  );
  const unit = new URL('../../../../../deploy/debian/units/svc-worker.service', import.meta.url);
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(await readFile(unit, 'utf8')) ?? [];
  expect(Number(seconds)).toBeGreaterThanOrEqual(config.workerEndSeconds + 100);
  expect(Number(seconds)).toBeGreaterThanOrEqual(config.drainSeconds + 100);
});
