import { expect, test } from 'vitest';
import { Charge } from './charge.ts';
import { KeyedBudget } from './keyed-budget.ts';

test('takes what exceeds the own part, as far as there is some, and gives back what is no longer needed', () => {
  const budget = new KeyedBudget(10).of('a');
  const [one, other] = [new Charge(budget, 5), new Charge(budget, 5)];
  expect([one.set(5), budget.left]).toEqual([true, 10]);
  expect([one.set(12), budget.left]).toEqual([true, 3]);
  expect([other.set(9), budget.left]).toEqual([false, 0]);
  expect([one.set(11), budget.left]).toEqual([true, 1]);
  expect([other.set(9), budget.left]).toEqual([true, 0]);
  expect([one.set(0), other.set(0), budget.left]).toEqual([true, true, 10]);
});
