import { expect, it } from 'vitest';
import { DesktopRates } from './desktop-rates.ts';

it('limits each tenant, pictures more than movements, and forgets who asks no more', () => {
  let now = 0;
  const rates = new DesktopRates(() => now);
  const taken = (tenant: string, tool: string) => {
    let count = 0;
    while (rates.take(tenant, tool)) count += 1;
    return count;
  };
  expect(taken('usr_a', 'mouse')).toBe(400);
  expect(taken('usr_b', 'screenshot')).toBe(40);
  expect(taken('usr_d', 'watch')).toBe(40);
  now += 1_000;
  expect(taken('usr_a', 'screenshot')).toBe(10);
  now += 60_000;
  expect(taken('usr_c', 'keyboard')).toBe(400);
  expect(taken('usr_a', 'mouse')).toBe(400);
});
