import { expect, test } from 'vitest';
import { isTooDeep, MAX_JSON_DEPTH } from './json-depth.ts';

const nested = (depth: number) => `${'{"a":['.repeat(depth / 2)}1${']}'.repeat(depth / 2)}`;

test('accepts nesting up to the maximum', () => {
  expect(isTooDeep(nested(MAX_JSON_DEPTH))).toBe(false);
  expect(isTooDeep(nested(MAX_JSON_DEPTH + 2))).toBe(true);
});

test('ignores brackets in strings', () => {
  const text = JSON.stringify({ a: `${'[{'.repeat(1000)}"\\"` });
  expect(isTooDeep(text)).toBe(false);
  expect(isTooDeep(`[${text},${nested(MAX_JSON_DEPTH)}]`)).toBe(true);
});

test('does not count siblings as nesting', () => {
  expect(isTooDeep(`[${'[],'.repeat(1000)}{}]`)).toBe(false);
});
