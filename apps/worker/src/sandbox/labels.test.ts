import { describe, expect, test } from 'vitest';
import { LABELS } from '../../test/labels.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';
import { assignmentOf } from './assignment.ts';
import { POOL_LABELS, type Progress, readLabels, sandboxLabels } from './labels.ts';

const ASSIGNMENT = assignmentOf(placement({ agent: ONE_SHOT }), new ManualClock());
const BARE: Progress = { state: 'running', revision: 0 };

/** Through JSON, as a file keeps them. */
const read = (labels: object) => readLabels(JSON.parse(JSON.stringify(labels)));

describe('labels', () => {
  test.each<[string, Partial<Progress>]>([
    ['nothing more', {}],
    ['a first run', { running_at: '2026-01-01T00:00:01.000Z' }],
    ['the begin of its usage', { metered_from: { cpu_ms: 1, at_ms: 2 } }],
    ['a reason to end', { end_reason: 'deleted' }],
    ['a loaded workspace', { workspace_loaded: true }],
    ['the exit of its agent', { agent_exit_code: 0 }],
    ['a quarantine', { quarantined: true }],
    ['an end of its quarantine', { quarantined: false }],
  ])('of a sandbox with %s are read as they were written', (_what, more) => {
    const progress = { ...BARE, ...more };
    expect(read(sandboxLabels(ASSIGNMENT, progress))).toStrictEqual({
      role: 'sandbox',
      assignment: ASSIGNMENT,
      progress,
    });
  });

  test('of the pool are read as such', () => {
    expect(read(POOL_LABELS)).toEqual({ role: 'pool' });
  });

  test.each([
    ['missing', undefined],
    ['empty', {}],
    ['of another version', { ...LABELS, version: 2 }],
    ['of the pool, of another version', { version: 2, role: 'pool' }],
    ['of another role', { ...LABELS, role: 'spare' }],
    ['without a sandbox', { version: 1, role: 'sandbox' }],
    ['without a state', { ...LABELS, state: undefined }],
    ['in an unknown state', { ...LABELS, state: 'asleep' }],
    ['without a revision', { ...LABELS, revision: undefined }],
    ['with a negative revision', { ...LABELS, revision: -1 }],
    ['with an unknown reason to end', { ...LABELS, end_reason: 'boredom' }],
    ['with half a begin of its usage', { ...LABELS, metered_from: { cpu_ms: 1 } }],
    ['with the other half', { ...LABELS, metered_from: { at_ms: 1 } }],
    ['with a workspace that may be loaded', { ...LABELS, workspace_loaded: false }],
    ['with half an exit code', { ...LABELS, agent_exit_code: 0.5 }],
    ['with a token that can be guessed', { ...LABELS, agent_token: 'x'.repeat(31) }],
    ['without an end of its lifetime', { ...LABELS, lifetime_ends_at: undefined }],
  ])('that are %s are not read', (_what, labels) => {
    expect(readLabels(labels)).toBeUndefined();
  });
});

describe('the token of an agent', () => {
  test('has 32 random bytes, and exists only with an agent', () => {
    expect(ASSIGNMENT.agent_token).toMatch(/^[0-9a-f]{64}$/);
    const again = assignmentOf(placement({ agent: ONE_SHOT }), new ManualClock());
    expect(again.agent_token).not.toBe(ASSIGNMENT.agent_token);
    expect(assignmentOf(placement(), new ManualClock())).not.toHaveProperty('agent_token');
  });

  test('stands beside no secrets of the request', () => {
    const request = { ...placement({ agent: ONE_SHOT }), env_vars: { KEY: 'a secret' } };
    const text = JSON.stringify(assignmentOf(request, new ManualClock()));
    expect(text).not.toContain('a secret');
    expect(text).not.toContain('do it');
  });
});
