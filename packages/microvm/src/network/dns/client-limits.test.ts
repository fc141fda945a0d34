import { expect, test } from 'vitest';
import { ClientLimits } from './client-limits.ts';

function entered(limits: ClientLimits, client: number, tries: number): number {
  return Array.from({ length: tries }, () => limits.enter(client)).filter(Boolean).length;
}

test('limits the queries in progress of each client separately', () => {
  const limits = new ClientLimits(1000, 1000);
  expect(entered(limits, 1, 100)).toBe(32);
  expect(entered(limits, 2, 10)).toBe(10);
  limits.leave(1);
  expect(entered(limits, 1, 10)).toBe(1);
});

test('limits the queries in progress of all clients', () => {
  const limits = new ClientLimits(1000, 1000);
  const perClient = Array.from({ length: 40 }, (_, client) => entered(limits, client, 32));
  expect(perClient.reduce((sum, count) => sum + count)).toBe(512);
});

test('limits the rate of each client separately', () => {
  const limits = new ClientLimits(0.001, 5);
  expect(entered(limits, 1, 10)).toBe(5);
  expect(entered(limits, 2, 10)).toBe(5);
});
