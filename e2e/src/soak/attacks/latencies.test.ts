import { expect, test } from 'vitest';
import { comparison, Latencies } from './latencies.ts';

test('failed operations have no time, and none has no percentile', async () => {
  const latencies = new Latencies();
  expect(latencies.percentile(0.5)).toBeNaN();
  await expect(latencies.time(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(latencies.count).toBe(0);
  expect(await latencies.time(async () => 7)).toBe(7);
  expect(latencies.count).toBe(1);
  expect(latencies.percentile(0.95)).toBe(latencies.percentile(0.5));
  expect(comparison('exec', latencies, latencies)).toMatch(
    /^exec: p50 \d+ → \d+ ms \(.+ ×\), p95 .*; 1 and 1 samples$/,
  );
});
