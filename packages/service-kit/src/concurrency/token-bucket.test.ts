import { describe, expect, it } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

describe('take', () => {
  it('allows a burst, then the rate, and accumulates no more than the burst', () => {
    let now = 0;
    const bucket = new TokenBucket({ perSecond: 10, burst: 3 }, () => now);
    const takes = (at: number, count = 5) => {
      now = at;
      return Array.from({ length: count }, () => bucket.take()).filter(Boolean).length;
    };
    expect(takes(0)).toBe(3);
    expect(takes(99)).toBe(0);
    expect(takes(100)).toBe(1);
    expect(takes(350)).toBe(2);
    expect(takes(60_000)).toBe(3);
    expect(takes(160_000, 10)).toBe(3);
  });
});

describe('spend', () => {
  it('returns the time until the debt is paid off', () => {
    let now = 0;
    const bucket = new TokenBucket({ perSecond: 1_000, burst: 1_000 }, () => now);
    expect(bucket.spend(1_000)).toBe(0);
    expect(bucket.spend(500)).toBe(500);
    now = 500;
    expect(bucket.spend(0)).toBe(0);
  });
});
