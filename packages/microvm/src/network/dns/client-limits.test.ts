import { expect, test } from 'vitest';
import { ClientLimits } from './client-limits.ts';

function entered(limits: ClientLimits, client: number, tries: number): (() => void)[] {
  const leaves = Array.from({ length: tries }, () => limits.enter(client));
  return leaves.filter((leave) => leave !== undefined);
}

test('limits the queries in progress of each client separately', () => {
  const limits = new ClientLimits(1000, 1000);
  const leaves = entered(limits, 1, 100);
  expect(leaves).toHaveLength(32);
  expect(entered(limits, 2, 10)).toHaveLength(10);
  leaves[0]?.();
  expect(entered(limits, 1, 10)).toHaveLength(1);
});

test('leaves queries to a client while many others have as many in progress as they can', () => {
  const limits = new ClientLimits(1000, 1000);
  const others = Array.from({ length: 100 }, (_, client) => entered(limits, client, 100));
  expect(others.flat()).toHaveLength(512 + 100 * 4);
  expect(entered(limits, 100, 100)).toHaveLength(4);
});

test('limits the rate of each client separately', () => {
  const limits = new ClientLimits(0.001, 5);
  expect(entered(limits, 1, 10)).toHaveLength(5);
  expect(entered(limits, 2, 10)).toHaveLength(5);
});
