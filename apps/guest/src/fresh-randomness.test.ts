import { afterEach, expect, test } from 'vitest';
import { freshenRandomness } from './fresh-randomness.ts';

const own = Math.random;
afterEach(() => {
  Math.random = own;
});

test('draws distinct numbers, evenly distributed in [0, 1)', () => {
  freshenRandomness();
  const drawn = Array.from({ length: 10_000 }, () => Math.random());
  expect(drawn.every((number) => number >= 0 && number < 1)).toBe(true);
  expect(new Set(drawn).size).toBe(drawn.length);
  const mean = drawn.reduce((sum, number) => sum + number, 0) / drawn.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.05);
});
