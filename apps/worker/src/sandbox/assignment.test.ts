import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/manual-clock.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';
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

  it('gives each agent a token of its own', () => {
    const tokens = Array.from(
      { length: 2 },
      () => assignmentOf(placement({ agent: ONE_SHOT }), new ManualClock()).agent_token,
    );
    for (const token of tokens) expect(token).toMatch(/^[0-9a-f]{64}$/);
    expect(tokens[0]).not.toBe(tokens[1]);
    expect(assignmentOf(placement(), new ManualClock())).not.toHaveProperty('agent_token');
  });
});
