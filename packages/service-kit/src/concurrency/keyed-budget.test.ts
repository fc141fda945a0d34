import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyedBudget } from './keyed-budget.ts';

const MOST = 100;
const SHARING = { own: 7, shared: 250 };
const KEYS = 6;

test('whatever keys take and give, each has its own part, and all together hold no more than the total', () => {
  const step = fc.record({
    key: fc.nat({ max: KEYS - 1 }),
    amount: fc.nat({ max: 150 }),
    gives: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const budgets = new KeyedBudget<number>(MOST, SHARING);
      const parts = Array.from({ length: KEYS }, (_, key) => ({
        budget: budgets.of(key),
        held: 0,
      }));
      for (const { key, amount, gives } of steps) {
        const part = parts[key];
        if (part === undefined) throw new Error('a step has a key');
        if (gives) {
          const given = Math.min(amount, part.held);
          part.budget.give(given);
          part.held -= given;
        } else {
          const { left } = part.budget;
          const taken = part.budget.take(amount);
          expect(taken).toBe(Math.min(amount, left));
          part.held += taken;
        }
        const beyondOwn = parts.map(({ held }) => Math.max(0, held - SHARING.own));
        expect(beyondOwn.reduce((sum, held) => sum + held)).toBeLessThanOrEqual(SHARING.shared);
        for (const { budget, held } of parts) {
          expect(held).toBeLessThanOrEqual(MOST);
          expect(held + budget.left).toBeGreaterThanOrEqual(SHARING.own);
        }
      }
      for (const { budget, held } of parts) budget.give(held);
      expect(budgets.isEmpty).toBe(true);
      expect(budgets.of(0).left).toBe(SHARING.own + Math.ceil(SHARING.shared / 4));
    }),
  );
});

test('a key without others has all of its limit', () => {
  const budget = new KeyedBudget(5).of('a');
  expect(budget.take(9)).toBe(5);
  expect(budget.take(1)).toBe(0);
  budget.give(2);
  expect(budget.left).toBe(2);
});
