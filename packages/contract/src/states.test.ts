import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ACTIVE_STATES, canMove, isActive, predecessors, SANDBOX_STATES } from './states.ts';

const state = fc.constantFrom(...SANDBOX_STATES);

describe('sandbox states', () => {
  it('can all move to destroyed, which is final', () => {
    for (const from of ACTIVE_STATES) expect(canMove(from, 'destroyed')).toBe(true);
    for (const to of SANDBOX_STATES) expect(canMove('destroyed', to)).toBe(false);
  });

  it('allow exactly the specified moves between active states', () => {
    const moves = ACTIVE_STATES.flatMap((from) =>
      ACTIVE_STATES.filter((to) => canMove(from, to)).map((to) => `${from} → ${to}`),
    );
    expect(moves).toEqual([
      'creating → configuring',
      'configuring → booting',
      'booting → running',
      'running → paused',
      'running → stopping',
      'paused → running',
    ]);
  });

  it('never change after destroyed, on any legal path', () => {
    fc.assert(
      fc.property(fc.array(state, { maxLength: 50 }), (wishes) => {
        let current: (typeof SANDBOX_STATES)[number] = 'creating';
        let destroyed = false;
        for (const wish of wishes) {
          if (!canMove(current, wish)) continue;
          expect(destroyed).toBe(false);
          expect(predecessors(wish)).toContain(current);
          current = wish;
          destroyed = current === 'destroyed';
          expect(isActive(current)).toBe(!destroyed);
        }
      }),
    );
  });
});
