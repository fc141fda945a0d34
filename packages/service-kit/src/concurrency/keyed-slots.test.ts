import { expect, test } from 'vitest';
import { KeyedSlots } from './keyed-slots.ts';

test('gives each key its own slots, each back once', () => {
  const slots = new KeyedSlots(2);
  const [first, second] = [slots.take('a'), slots.take('a')];
  expect(slots.take('a')).toBeUndefined();
  expect(slots.take('b')).toBeDefined();
  first?.();
  first?.();
  expect(slots.take('a')).toBeDefined();
  expect(slots.take('a')).toBeUndefined();
  second?.();
  expect(slots.take('a')).toBeDefined();
});

test.each([
  { keys: 1, most: 64, each: 64 },
  // A quarter of what is then free.
  { keys: 1, most: 1000, each: 205 },
  { keys: 16, most: 64, each: 52 },
  { keys: 100, most: 64, each: 10 },
  { keys: 1000, most: 64, each: 2 },
])('$keys keys that take what they can leave slots to others', ({ keys, most, each }) => {
  const slots = new KeyedSlots(most, 1024);
  const taken = new Map<string, (() => void)[]>();
  for (let round = 0; round < most; round += 1) {
    for (let key = 0; key < keys; key += 1) {
      const give = slots.take(`k${key}`);
      if (give !== undefined) taken.set(`k${key}`, [...(taken.get(`k${key}`) ?? []), give]);
    }
  }
  const counts = [...taken.values()].map(({ length }) => length);
  expect(counts).toHaveLength(keys);
  expect(Math.max(...counts)).toBe(each);
  const other = slots.take('other');
  expect(other).toBeDefined();
  expect(slots.isEmpty).toBe(false);
  for (const give of [...taken.values()].flat()) give();
  other?.();
  other?.();
  expect(slots.isEmpty).toBe(true);
});

test('gives the last slot of all to a key that holds none', () => {
  const slots = new KeyedSlots(2, 2);
  expect(slots.take('a')).toBeDefined();
  expect(slots.take('a')).toBeUndefined();
  expect(slots.take('b')).toBeDefined();
  expect(slots.take('c')).toBeUndefined();
});
