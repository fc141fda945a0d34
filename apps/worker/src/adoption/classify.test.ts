import { describe, expect, it } from 'vitest';
import { classify } from './classify.ts';

const LABELS = {
  version: 1,
  role: 'sandbox',
  vm_id: 'vm_1',
  generation: 3,
  revision: 7,
  tenant_id: 'usr_a',
  state: 'running',
  created_at: '2026-01-01T00:00:00.000Z',
  running_at: '2026-01-01T00:00:01.000Z',
  placement: {
    template: 'standard',
    size: {},
    idle_timeout_seconds: 60,
    max_lifetime_seconds: 7200,
  },
  lifetime_ends_at: Number.MAX_SAFE_INTEGER,
};

describe('classify', () => {
  it.each([
    ['running', false, 'running'],
    ['running', true, 'paused'],
    ['paused', false, 'running'],
    ['paused', true, 'paused'],
  ])('trusts the VM over its label: label %s, paused %s', (label, paused, state) => {
    expect(classify({ labels: { ...LABELS, state: label }, paused })).toMatchObject({
      kind: 'keep',
      progress: { state },
    });
  });
});
