import { expect, test } from 'vitest';
import { OutputBudgets } from './output-budgets.ts';

const MIB = 1024 * 1024;
const PART = 64 * 1024;

/** Takes parts until none is given. Returns the sum. */
function takeAll({ budget }: ReturnType<OutputBudgets['enter']>): number {
  let sum = 0;
  for (let taken = budget.take(PART); taken > 0; taken = budget.take(PART)) sum += taken;
  return sum;
}

test('gives a tenant 128 MiB for the commands that it runs at the same time', () => {
  const budgets = new OutputBudgets();
  const [first, second] = [budgets.enter('a'), budgets.enter('a')];
  expect(takeAll(first)).toBe(128 * MIB);
  expect(takeAll(second)).toBe(0);
  first.budget.give(MIB);
  expect(takeAll(second)).toBe(MIB);
});

test.each([
  // What one command may return.
  { count: 8, left: 10 * MIB },
  { count: 100, left: MIB },
])(
  'leaves $left bytes for the output of a neighbour of $count greedy tenants',
  ({ count, left }) => {
    const budgets = new OutputBudgets();
    const tenants = Array.from({ length: count }, (_, index) => budgets.enter(`t${index}`));
    const total = tenants.reduce((sum, tenant) => sum + takeAll(tenant), 0);
    expect(total).toBeLessThanOrEqual((1024 + count) * MIB);
    expect(takeAll(budgets.enter('neighbour'))).toBeGreaterThanOrEqual(left);
  },
);

test('gives what a tenant holds beyond its own back to all', () => {
  const budgets = new OutputBudgets();
  const greedy = Array.from({ length: 100 }, (_, index) => budgets.enter(`t${index}`));
  const taken = greedy.map(takeAll);
  greedy.forEach(({ budget, leave }, index) => {
    budget.give(taken[index] ?? 0);
    leave();
  });
  expect(greedy.map(takeAll)).toEqual(taken);
});
