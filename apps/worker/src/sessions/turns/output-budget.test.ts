import type { AgentFrame } from '@svc/contract';
import { describe, expect, it } from 'vitest';
import { RateLimit } from '../rate-limit.ts';
import { OutputBudget } from './output-budget.ts';

describe('a rate limit', () => {
  it('lets a burst pass, then what its rate allows', () => {
    let now = 0;
    const limit = new RateLimit({ perSecond: 10, burst: 3 }, () => now);
    const taken = () => Array.from({ length: 5 }, () => limit.take()).filter(Boolean).length;
    expect(taken()).toBe(3);
    now = 100;
    expect(taken()).toBe(1);
    now = 60_000;
    expect(taken()).toBe(3);
  });

  it('says how long a debt lasts', () => {
    let now = 0;
    const limit = new RateLimit({ perSecond: 1_000, burst: 1_000 }, () => now);
    expect(limit.spend(1_000)).toBe(0);
    expect(limit.spend(500)).toBe(500);
    now = 500;
    expect(limit.spend(0)).toBe(0);
  });
});

describe('the output budget', () => {
  const MIB = 1024 * 1024;
  const admit = (budget: OutputBudget, frame: AgentFrame, bytes = MIB, wireVersion: 1 | 2 = 2) =>
    budget.admit({ type: 'frame', n: 1, frame, bytes }, wireVersion);
  const text: AgentFrame = { type: 'text_delta', data: 'x', agent: 'a' };
  const end: AgentFrame = { type: 'task_completed', status: 'completed', result: '' };

  it('leaves room for the end of a turn, though not for ever', () => {
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

  it('names no agent under wire version 1', () => {
    expect(admit(new OutputBudget(), text, 1, 1)).toEqual({ type: 'text_delta', data: 'x' });
  });
});
