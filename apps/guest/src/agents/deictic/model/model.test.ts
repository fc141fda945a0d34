import { describe, expect, test } from 'vitest';
import { contextWindow } from './context-window.ts';
import { retryAfterMs } from './model-failure.ts';
import { pauseBefore } from './with-retries.ts';

test.each([
  ['claude-sonnet-4-5', 200_000],
  ['gpt-4o-mini', 128_000],
  ['gpt-4.1-nano', 1_047_576],
  ['gpt-4', 8_192],
  ['meta-llama/Llama-3.1-70B', 128_000],
  ['my-own', 32_768],
])('the context window of %s is %i', (model, tokens) => {
  expect(contextWindow(model)).toBe(tokens);
});

describe('the pause before another attempt', () => {
  const limits = { pauseMs: 100, maxPauseMs: 1_000 };

  test('doubles with jitter up to a bound', () => {
    expect(pauseBefore(1, limits, 0, () => 1)).toBe(100);
    expect(pauseBefore(1, limits, 0, () => 0)).toBe(50);
    expect(pauseBefore(3, limits, 0, () => 1)).toBe(400);
    expect(pauseBefore(30, limits, 0, () => 1)).toBe(1_000);
  });

  test('is as long as the endpoint requests, up to the bound', () => {
    expect(pauseBefore(1, limits, 700, () => 1)).toBe(700);
    expect(pauseBefore(1, limits, 3_600_000, () => 1)).toBe(1_000);
  });
});

test.each([
  [{ 'retry-after': '3' }, 3_000],
  [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:09 GMT' }, 4_000],
  [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:01 GMT' }, 0],
  [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
  [{ 'retry-after': 'soon' }, undefined],
  [{}, undefined],
])('the wait requested by %o is %s ms', (headers, ms) => {
  expect(retryAfterMs(headers, 5_000)).toBe(ms);
});
