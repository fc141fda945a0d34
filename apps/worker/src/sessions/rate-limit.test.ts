import { describe, expect, it } from 'vitest';
import { RateLimit } from './rate-limit.ts';

describe('a rate limit', () => {
  it('lets a burst pass, then what its rate allows', () => {
    let now = 0;
    const limit = new RateLimit({ perSecond: 10, burst: 3 }, () => now);
    const taken = () => Array.from({ length: 5 }, () => limit.take()).filter(Boolean).length;
    expect(taken()).toBe(3);
    now = 100;
    expect(taken()).toBe(1);
    now = 60_000;
    expect(taken()).toBe(3);
  });

  it('says how long a debt lasts', () => {
    let now = 0;
    const limit = new RateLimit({ perSecond: 1_000, burst: 1_000 }, () => now);
    expect(limit.spend(1_000)).toBe(0);
    expect(limit.spend(500)).toBe(500);
    now = 500;
    expect(limit.spend(0)).toBe(0);
  });
});
