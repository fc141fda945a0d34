import type { AgentFrame } from '@svc/contract';
import { describe, expect, it } from 'vitest';
import { OutputBudget } from './output-budget.ts';

describe('OutputBudget', () => {
  const MIB = 1024 * 1024;
  const admit = (budget: OutputBudget, frame: AgentFrame, bytes = MIB, wireVersion: 1 | 2 = 2) =>
    budget.admit({ type: 'frame', n: 1, frame, bytes }, wireVersion);
  const text: AgentFrame = { type: 'text_delta', data: 'x', agent: 'a' };
  const end: AgentFrame = { type: 'task_completed', status: 'completed', result: '' };

  it('reports the excess once, and still admits the end of a turn up to a second limit', () => {
    const budget = new OutputBudget();
    for (let mib = 0; mib < 64; mib += 1) expect(admit(budget, text)).toBe(text);
    expect(admit(budget, text)).toMatchObject({ type: 'error', code: 'frame_rate' });
    expect(admit(budget, text)).toBeUndefined();
    expect(admit(budget, end)).toBe(end);
    for (let mib = 0; mib < 16; mib += 1) admit(budget, end);
    expect(admit(budget, end)).toBeUndefined();
    budget.refill();
    expect(admit(budget, text)).toBe(text);
  });

  it('omits the agent’s name under wire version 1', () => {
    expect(admit(new OutputBudget(), text, 1, 1)).toEqual({ type: 'text_delta', data: 'x' });
  });
});
