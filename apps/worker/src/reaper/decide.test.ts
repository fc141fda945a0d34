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

  it.each<[string, Partial<ReaperView>, number, ReturnType<typeof decide>]>([
    ['just before its idle timeout', {}, 54_999, { warn: false }],
    ['at its idle timeout', {}, 55_000, { warn: false, end: 'idle_timeout' }],
    ['while it is active', { idleSince: undefined }, 80_000, { warn: false }],
    ['with a client', { connections: 1 }, 80_000, { warn: false }],
    ['while it is paused', { state: 'paused' }, 99_999, { warn: false }],
    ['just before the warning', { connections: 1 }, 89_999, { warn: false }],
    ['at the warning', { connections: 1 }, 90_000, { warn: true }],
    ['after the warning', { connections: 1, warned: true }, 90_000, { warn: false }],
    ['paused, at the warning', { connections: 1, state: 'paused' }, 90_000, { warn: false }],
    ['at its end', { connections: 1 }, 100_000, { warn: true, end: 'max_lifetime' }],
    ['paused, at its end', { state: 'paused' }, 100_000, { warn: false, end: 'max_lifetime' }],
  ])('a sandbox %s', (_when, changes, now, verdict) => {
    const idle: ReaperView = {
      state: 'running',
      lifetimeEndsAt: 100_000,
      idleTimeoutMs: 5_000,
      idleSince: 50_000,
      connections: 0,
      warned: false,
    };
    expect(decide({ ...idle, ...changes }, now)).toEqual(verdict);
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
