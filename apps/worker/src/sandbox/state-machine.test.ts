import { canMove, SANDBOX_STATES } from '@svc/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IllegalMoveError, StateMachine } from './state-machine.ts';

describe('StateMachine', () => {
  it('makes exactly the legal moves, and refuses others without a change', () => {
    const state = fc.constantFrom(...SANDBOX_STATES);
    fc.assert(
      fc.property(state, fc.array(state), (first, moves) => {
        const machine = new StateMachine(first);
        for (const to of moves) {
          const from = machine.state;
          if (canMove(from, to)) {
            machine.move(to);
            expect(machine.state).toBe(to);
          } else {
            expect(() => machine.move(to)).toThrow(IllegalMoveError);
            expect(machine.state).toBe(from);
          }
        }
      }),
    );
  });
});
