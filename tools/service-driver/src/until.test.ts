import { expect, test } from 'vitest';
import { until } from './until.ts';

test('resolves with the first value that is neither undefined nor false', async () => {
  const values = [undefined, false, 0];
  expect(await until('a value', async () => values.shift(), { intervalMs: 1 })).toBe(0);
});

test('names the condition when the deadline passes', async () => {
  const never = until('it happens', async () => false, { deadlineMs: 5, intervalMs: 1 });
  await expect(never).rejects.toThrow('timed out after 0.005 s waiting until it happens');
});

test('fails at once when the check fails', async () => {
  const failing = until('it happens', () => Promise.reject(new Error('broken')));
  await expect(failing).rejects.toThrow('broken');
});
