import type { Budget } from '@svc/service-kit/concurrency';
import { expect, test } from 'vitest';
import { createOutputBudgets } from './output-budgets.ts';

const MIB = 1024 * 1024;
const PART = 64 * 1024;

/** Takes parts until none is given. Returns the sum. */
function takeAll(budget: Budget): number {
  let sum = 0;
  for (let taken = budget.take(PART); taken > 0; taken = budget.take(PART)) sum += taken;
  return sum;
}

test('gives a tenant 128 MiB for the commands that it runs at the same time', () => {
  const budgets = createOutputBudgets();
  const [first, second] = [budgets.of('a'), budgets.of('a')];
  expect(takeAll(first)).toBe(128 * MIB);
  expect(takeAll(second)).toBe(0);
  first.give(MIB);
  expect(takeAll(second)).toBe(MIB);
});

test.each([
  // What one command may return.
  { count: 8, left: 10 * MIB },
  { count: 100, left: MIB },
])(
  'leaves $left bytes for the output of a neighbour of $count greedy tenants',
  ({ count, left }) => {
    const budgets = createOutputBudgets();
    const tenants = Array.from({ length: count }, (_, index) => budgets.of(`t${index}`));
    const total = tenants.reduce((sum, tenant) => sum + takeAll(tenant), 0);
    expect(total).toBeLessThanOrEqual((1024 + count) * MIB);
    expect(takeAll(budgets.of('neighbour'))).toBeGreaterThanOrEqual(left);
  },
);

test('gives what a tenant holds beyond its own back to all', () => {
  const budgets = createOutputBudgets();
  const greedy = Array.from({ length: 100 }, (_, index) => budgets.of(`t${index}`));
  const taken = greedy.map(takeAll);
  greedy.forEach((budget, index) => {
    budget.give(taken[index] ?? 0);
  });
  expect(budgets.isEmpty).toBe(true);
  expect(greedy.map(takeAll)).toEqual(taken);
});
