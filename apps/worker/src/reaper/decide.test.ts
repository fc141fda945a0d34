import { SANDBOX_STATES } from '@svc/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide, type ReaperView } from './decide.ts';

const at = fc.integer({ min: 0, max: 20_000_000 });
const view: fc.Arbitrary<ReaperView> = fc.record({
  state: fc.constantFrom(...SANDBOX_STATES),
  lifetimeEndsAt: at,
  idleTimeoutMs: fc.integer({ min: 1_000, max: 7_200_000 }),
  idleSince: fc.option(at, { nil: undefined }),
  connections: fc.nat({ max: 3 }),
  warned: fc.boolean(),
});

describe('decide', () => {
  it('ends a sandbox at the end of its lifetime, in every state', () => {
    fc.assert(
      fc.property(view, at, (sandbox, now) => {
        const over = now >= sandbox.lifetimeEndsAt;
        expect(decide(sandbox, now).end === 'max_lifetime').toBe(over);
      }),
    );
  });

  it('ends only a running sandbox without connections as idle, and never early', () => {
    fc.assert(
      fc.property(view, at, (sandbox, now) => {
        if (decide(sandbox, now).end !== 'idle_timeout') return;
        expect(sandbox.state).toBe('running');
        expect(sandbox.connections).toBe(0);
        expect(now - (sandbox.idleSince ?? Number.NaN)).toBeGreaterThanOrEqual(
          sandbox.idleTimeoutMs,
        );
      }),
    );
  });

  it('ends every idle running sandbox after its timeout', () => {
    fc.assert(
      fc.property(view, fc.nat({ max: 100_000 }), (sandbox, late) => {
        const idle = { ...sandbox, state: 'running' as const, connections: 0, idleSince: 1_000 };
        const now = 1_000 + idle.idleTimeoutMs + late;
        expect(decide(idle, now).end).toBeDefined();
      }),
    );
  });

  it('warns attached clients once, in the last ten seconds', () => {
    fc.assert(
      fc.property(view, at, (sandbox, now) => {
        const { warn } = decide(sandbox, now);
        const due =
          sandbox.state === 'running' &&
          sandbox.connections > 0 &&
          !sandbox.warned &&
          now >= sandbox.lifetimeEndsAt - 10_000;
        expect(warn).toBe(due);
      }),
    );
  });

  it('prefers the lifetime to idleness', () => {
    const both: ReaperView = {
      state: 'running',
      lifetimeEndsAt: 5_000,
      idleTimeoutMs: 1_000,
      idleSince: 0,
      connections: 0,
      warned: false,
    };
    expect(decide(both, 4_999)).toEqual({ warn: false, end: 'idle_timeout' });
    expect(decide(both, 5_000)).toEqual({ warn: false, end: 'max_lifetime' });
  });
});
