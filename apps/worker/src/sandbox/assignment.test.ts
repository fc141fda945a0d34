import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/manual-clock.ts';
import { placement } from '../../test/placement.ts';
import { assignmentOf } from './assignment.ts';

describe('assignmentOf', () => {
  const clock = new ManualClock();
  const created = (offsetMs: number) =>
    assignmentOf(
      placement({
        created_at: new Date(clock.wall() + offsetMs).toISOString(),
        max_lifetime_seconds: 100,
      }),
      clock,
    ).lifetime_ends_at - clock.wall();

  it('counts the lifetime from the creation', () => {
    expect(created(0)).toBe(100_000);
    expect(created(-30_000)).toBe(70_000);
  });

  it('limits the effect of a clock that is far off', () => {
    expect(created(3_600_000)).toBe(100_000);
    expect(created(-3_600_000)).toBe(-20_000);
  });
});
