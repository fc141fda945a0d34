import { expect, it } from 'vitest';
import { KeyedTokenBuckets } from './keyed-token-buckets.ts';

it('limits each key by itself', () => {
  const buckets = new KeyedTokenBuckets({ perSecond: 1, burst: 3 }, () => 0);
  expect([buckets.take('a', 2), buckets.take('a', 2), buckets.take('b', 2)]).toEqual([
    true,
    false,
    true,
  ]);
});

it('remembers a debt until it is paid off, however many keys there are', () => {
  let now = 0;
  const buckets = new KeyedTokenBuckets({ perSecond: 1, burst: 3 }, () => now);
  buckets.spend('a', 5);
  for (let index = 0; index < 10; index += 1) buckets.spend(`other ${index}`, 1);
  expect([buckets.debtMs('a'), buckets.debtMs('other 0'), buckets.debtMs('unknown')]).toEqual([
    2000, 0, 0,
  ]);
  now = 10_000;
  expect([buckets.take('b'), buckets.take('a', 3), buckets.take('a')]).toEqual([true, true, false]);
});
