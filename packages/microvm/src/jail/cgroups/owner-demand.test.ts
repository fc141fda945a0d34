import { expect, test } from 'vitest';
import { OwnerDemand } from './owner-demand.ts';

/** The shares of owners after their VMs have wanted so many cores for some time. */
function sharesOf(cores: Readonly<Record<string, readonly number[]>>): Record<string, number> {
  const demand = new OwnerDemand();
  for (let second = 0; second < 10; second += 1) {
    const vms = Object.entries(cores).flatMap(([owner, wanted]) =>
      wanted.map(
        (each, index) =>
          [`${owner}-${index}`, { owner, wantedMs: 5_000 + each * second * 1000 }] as const,
      ),
    );
    demand.note(new Map(vms), second * 1000);
  }
  return Object.fromEntries(demand.shares());
}

test('one core or less gets the full weight, and more gets less, but a quarter', () => {
  const shares = sharesOf({ idle: [0], steady: [0.5, 0.5], two: [1, 1], many: Array(50).fill(1) });
  expect(shares).toMatchObject({ idle: 1, steady: 1, many: 0.25 });
  expect(shares.two).toBeCloseTo(0.5, 1);
});

test('what a VM wanted before it had an owner does not count, nor what an ended one did', () => {
  const demand = new OwnerDemand();
  demand.note(new Map([['a', { owner: 'one', wantedMs: 0 }]]), 0);
  const fromPool = { owner: 'two', wantedMs: 60_000 };
  demand.note(new Map([['b', fromPool]]), 1000);
  expect(Object.fromEntries(demand.shares())).toEqual({ two: 1 });
  demand.note(new Map([['b', fromPool]]), 2000);
  expect(Object.fromEntries(demand.shares())).toEqual({ two: 1 });
  demand.note(new Map(), 3000);
  expect(demand.shares().size).toBe(0);
});
