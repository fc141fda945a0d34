import { expect, test } from 'vitest';
import { machineLimits } from './machine-limits.ts';

const disk = (available: number, used: number) => ({
  diskAvailableMib: async () => available,
  diskUsedMib: async () => used,
});

test('what the VMs of an earlier run hold of the disk does not lessen the capacity', async () => {
  const before = await machineLimits(disk(25_000, 0));
  expect(await machineLimits(disk(20_000, 5_000))).toEqual(before);
  const less = await machineLimits(disk(20_000, 0));
  expect(less.diskMib).toBeLessThan(before.diskMib);
});
