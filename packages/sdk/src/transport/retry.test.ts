import { beforeEach, expect, test, vi } from 'vitest';
import { SvcError } from '../errors.ts';
import { withRetries } from './retry.ts';

const pauses: number[] = [];

vi.mock('node:timers/promises', () => ({
  setTimeout: async (ms: number) => {
    pauses.push(ms);
  },
}));

beforeEach(() => {
  pauses.length = 0;
});

const putOff = (seconds: number) =>
  new SvcError({
    code: 'too_many_execs',
    detail: 'Wait.',
    status: 429,
    retryAfterSeconds: seconds,
  });
const unavailable = new SvcError({ code: 'worker_unavailable', detail: 'Wait.', status: 503 });

/** Runs an attempt that fails with each error in turn and then succeeds. */
function run(errors: readonly SvcError[], limits: { maxRetries: number; maxWaitMs: number }) {
  const left = [...errors];
  return withRetries(limits, new AbortController().signal, async () => {
    const error = left.shift();
    if (error !== undefined) throw error;
    return 'done';
  });
}

test('waits as long as the service asks, and longer from time to time', async () => {
  const errors = Array.from({ length: 8 }, () => putOff(1));
  expect(await run(errors, { maxRetries: 0, maxWaitMs: 60_000 })).toBe('done');
  expect(pauses).toHaveLength(8);
  for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(1_000);
  expect(pauses.at(-1)).toBeGreaterThan(2_000);
});

test('never waits longer in total than allowed', async () => {
  const errors = Array.from({ length: 1_000 }, () => putOff(1));
  await expect(run(errors, { maxRetries: 0, maxWaitMs: 60_000 })).rejects.toMatchObject({
    code: 'too_many_execs',
  });
  const total = pauses.reduce((sum, ms) => sum + ms, 0);
  expect(total).toBeGreaterThan(50_000);
  expect(total).toBeLessThanOrEqual(60_000);
});

test('does not count a wait as a retry, nor a retry as a wait', async () => {
  const errors = [putOff(1), unavailable, putOff(1), unavailable, putOff(1)];
  expect(await run(errors, { maxRetries: 2, maxWaitMs: 5_000 })).toBe('done');
  await expect(run(errors, { maxRetries: 1, maxWaitMs: 5_000 })).rejects.toBe(unavailable);
  await expect(run(errors, { maxRetries: 2, maxWaitMs: 2_500 })).rejects.toMatchObject({
    status: 429,
  });
});
