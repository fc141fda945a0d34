import type { Agent, LlmVendor } from '@svc/contract';

const OF_MODELS: readonly (readonly [RegExp, LlmVendor])[] = [
  [/^claude/, 'anthropic'],
  [/^(?:gpt|chatgpt|o\d)/, 'openai'],
  [/^gemini/, 'google'],
  [/^deepseek/, 'deepseek'],
];

/** The vendor that an agent is made for, or whose models have names like this one; else anthropic. */
export function vendorOf(agent: Agent, model: string | undefined): LlmVendor {
  if (agent === 'claude-code') return 'anthropic';
  if (agent === 'codex') return 'openai';
  return OF_MODELS.find(([names]) => names.test(model ?? ''))?.[1] ?? 'anthropic';
}
