import { describe, expect, test } from 'vitest';
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

describe('keys that share slots', () => {
  /** Takes what a key can have. */
  function takeAll(slots: KeyedSlots, key: string): (() => void)[] {
    const gives: (() => void)[] = [];
    for (let give = slots.take(key); give !== undefined; give = slots.take(key)) gives.push(give);
    return gives;
  }

  test('have at most their own, and a quarter of what is free', () => {
    const slots = new KeyedSlots(1000, { own: 4, shared: 1000 });
    const gives = takeAll(slots, 'a');
    expect(gives).toHaveLength(204);
    expect(takeAll(slots, 'b')).toHaveLength(164);
    for (const give of gives) give();
    expect(takeAll(slots, 'a')).toHaveLength(172);
  });

  test('have at most the limit of each', () => {
    expect(takeAll(new KeyedSlots(64, { own: 4, shared: 1000 }), 'a')).toHaveLength(64);
    expect(takeAll(new KeyedSlots(2, { own: 4, shared: 1000 }), 'a')).toHaveLength(2);
  });

  test('have their own, however many others take all that they can and give nothing back', () => {
    const slots = new KeyedSlots(64, { own: 4, shared: 1000 });
    const taken = Array.from({ length: 200 }, (_, index) => takeAll(slots, `k${index}`));
    expect(taken.at(0)).toHaveLength(64);
    expect(taken.at(-1)).toHaveLength(4);
    expect(taken.flat()).toHaveLength(1000 + 200 * 4);
    for (const give of taken.flat()) give();
    expect(slots.isEmpty).toBe(true);
    expect(takeAll(slots, 'k0')).toHaveLength(64);
  });
});
