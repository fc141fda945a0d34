import { expect, test } from 'vitest';
import { resourceLimits } from './resource-limits.ts';
import { translationCacheMib } from './translation-cache.ts';

test.each([
  [256, 256],
  [512, 256],
  [1024, 512],
  [16_384, 512],
])(
  'a guest of %i MiB has a cache of %i MiB, which the limit of its process covers',
  (memoryMib, cacheMib) => {
    expect(translationCacheMib({ memoryMib })).toBe(cacheMib);
    const { memoryBytes } = resourceLimits({ vcpu: 1, memoryMib });
    expect(memoryBytes / 1024 / 1024).toBe(memoryMib + cacheMib + 192);
  },
);
