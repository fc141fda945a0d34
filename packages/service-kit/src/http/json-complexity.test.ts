import { expect, test } from 'vitest';
import { isTooComplex, MAX_JSON_DEPTH } from './json-complexity.ts';

const nested = (depth: number) => `${'{"a":['.repeat(depth / 2)}1${']}'.repeat(depth / 2)}`;

test('accepts nesting up to the maximum', () => {
  expect(isTooComplex(nested(MAX_JSON_DEPTH))).toBe(false);
  expect(isTooComplex(nested(MAX_JSON_DEPTH + 2))).toBe(true);
});

test('ignores brackets in strings', () => {
  const text = JSON.stringify({ a: `${'[{'.repeat(1000)}"\\"` });
  expect(isTooComplex(text)).toBe(false);
  expect(isTooComplex(`[${text},${nested(MAX_JSON_DEPTH)}]`)).toBe(true);
});

test('does not count siblings as nesting', () => {
  expect(isTooComplex(`[${'[],'.repeat(1000)}{}]`)).toBe(false);
});

test('accepts as many values as the caller allows, and counts none in strings', () => {
  const text = JSON.stringify({ a: ',[{'.repeat(1000), b: [1, 2, {}], c: '' });
  expect([isTooComplex(text, 7), isTooComplex(text, 8)]).toEqual([true, false]);
});
