import { describe, expect, it } from 'vitest';
import { LABELS } from '../../test/labels.ts';
import { classify } from './classify.ts';

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
