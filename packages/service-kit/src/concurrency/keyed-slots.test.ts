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
