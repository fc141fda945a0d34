import { describe, expect, it } from 'vitest';
import { placement } from '../../test/harness.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { hostnameOf } from '../creating/acquire.ts';
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

  it('does not believe a clock that is far off', () => {
    expect(created(3_600_000)).toBe(100_000);
    expect(created(-3_600_000)).toBe(-20_000);
  });
});

describe('hostnameOf', () => {
  it.each([
    ['vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b', 'vm-019aa1b2c3d47e8f9a0b1c2d3e4f5a6b'],
    ['_A__b_', 'a-b'],
    ['x'.repeat(100), 'x'.repeat(63)],
  ])('makes a host name of %j', (id, name) => {
    expect(hostnameOf(id)).toBe(name);
  });
});
