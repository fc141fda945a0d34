import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

test('gives its burst at once, then its rate, and saves up no more than the burst', () => {
  const bucket = new TokenBucket(10, 3, 0);
  const takes = (now: number, count: number) =>
    Array.from({ length: count }, () => bucket.take(now)).filter(Boolean).length;
  expect(takes(0, 5)).toBe(3);
  expect(takes(99, 5)).toBe(0);
  expect(takes(100, 5)).toBe(1);
  expect(takes(350, 5)).toBe(2);
  expect(takes(100_000, 10)).toBe(3);
});
