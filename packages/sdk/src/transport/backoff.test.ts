import { afterEach, expect, test, vi } from 'vitest';
import { SvcError } from '../errors.ts';
import { backoffMs, retryAfterMs } from './backoff.ts';

const bounds = { firstMs: 100, longestMs: 1_000 };

afterEach(() => {
  vi.restoreAllMocks();
});

test('doubles the pause up to its bound', () => {
  vi.spyOn(Math, 'random').mockReturnValue(1);
  expect([0, 1, 2, 3, 4, 50].map((retry) => backoffMs(retry, bounds))).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ]);
});

test('takes off at most half of the pause as jitter', () => {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  expect([0, 1, 50].map((retry) => backoffMs(retry, bounds))).toEqual([50, 100, 500]);
});

test('reads the pause that the service requested', () => {
  const error = new SvcError({ code: 'rate_limited', detail: 'slow down', retryAfterSeconds: 7 });
  expect(retryAfterMs(error)).toBe(7_000);
  expect(retryAfterMs(new SvcError({ code: 'internal', detail: 'oops' }))).toBe(0);
});
