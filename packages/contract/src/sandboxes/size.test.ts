import { expect, test } from 'vitest';
import { LIMITS } from '../limits.ts';
import { givenSize } from './size.ts';

test.each([
  [1, 1],
  [2, 2],
  [3, 4],
  [5, 8],
  [LIMITS.vcpuMax, 8],
])('%i vCPUs are given as %i', (asked, given) => {
  expect(givenSize({ vcpu: asked })).toEqual({ vcpu: given });
});

test.each([
  [LIMITS.memoryMibMin, 256],
  [257, 512],
  [512, 512],
  [768, 1024],
  [8193, 16_384],
  [LIMITS.memoryMibMax, 16_384],
])('%i MiB of memory are given as %i', (asked, given) => {
  expect(givenSize({ memory_mib: asked })).toEqual({ memory_mib: given });
});

test('a disk has the size that was asked for, and what was not asked for is left open', () => {
  expect(givenSize({ disk_mib: 5001 })).toEqual({ disk_mib: 5001 });
  expect(givenSize({})).toEqual({});
});
