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

  it('keeps the room for the end of a turn, however much output is dropped before it', () => {
    const budget = new OutputBudget();
    for (let mib = 0; mib < 200; mib += 1) admit(budget, text);
    const exit: AgentFrame = { type: 'exit', exit_code: 0, id: 'x' };
    expect(admit(budget, exit)).toBe(exit);
    expect(admit(budget, end)).toBe(end);
  });

  it('drops all output after the first that has no room, also what would fit', () => {
    const budget = new OutputBudget();
    for (let mib = 0; mib < 63; mib += 1) admit(budget, text);
    expect(admit(budget, text, 2 * MIB)).toMatchObject({ type: 'error' });
    expect(admit(budget, text, 1)).toBeUndefined();
  });

  it('names the request whose output it begins to drop, but not the call of a tool', () => {
    const output: AgentFrame = { type: 'stdout', data: 'x', id: 'mine' };
    expect(admit(new OutputBudget(), output, 65 * MIB)).toEqual({
      type: 'error',
      code: 'frame_rate',
      message: expect.any(String),
      id: 'mine',
    });
    const result: AgentFrame = { type: 'tool_result', id: 'its', content: '', is_error: false };
    expect(admit(new OutputBudget(), result, 65 * MIB)).not.toHaveProperty('id');
  });

  it('omits the agent’s name under wire version 1', () => {
    expect(admit(new OutputBudget(), text, 1, 1)).toEqual({ type: 'text_delta', data: 'x' });
  });
});
