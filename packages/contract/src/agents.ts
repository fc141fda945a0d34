/** The agents that can run in a sandbox, and the models that each accepts. */

import type { LlmVendor } from './vendors.ts';

export const AGENTS = ['deictic', 'claude-code', 'codex'] as const;
export type Agent = (typeof AGENTS)[number];

export const AGENT_STATUSES = ['running', 'completed', 'failed'] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** Form of every model name. */
export const MODEL_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$';
const MODEL = new RegExp(MODEL_PATTERN);

/**
 * The size of an agent's sandbox when the request names none; absent values are the template's defaults. Each distinct
 * size needs another snapshot of every template, so agents share sizes. After forty turns with 1 MB of conversation,
 * Claude Code used 190 MiB of data and 100 MiB of program memory, and codex 40 and 125; the rest is for commands.
 */
export const AGENT_SIZES: Record<Agent, { vcpu?: number; memory_mib?: number }> = {
  deictic: {},
  'claude-code': { memory_mib: 1024 },
  codex: { memory_mib: 1024 },
};

/** The vendor whose API an agent speaks; undefined for an agent that speaks the API of every vendor. */
export const AGENT_VENDORS: Readonly<Record<Agent, LlmVendor | undefined>> = {
  deictic: undefined,
  'claude-code': 'anthropic',
  codex: 'openai',
};

const MODEL_PREFIXES: Record<Agent, readonly string[] | undefined> = {
  deictic: undefined,
  'claude-code': ['claude'],
  codex: ['gpt', 'o'],
};

/** Whether `value` is the name of an agent. */
export function isAgent(value: string): value is Agent {
  return (AGENTS as readonly string[]).includes(value);
}

/**
 * The rule that a model breaks for this agent, or undefined when it is acceptable.
 * Omitting the model is acceptable for an agent of one vendor, since each vendor has a default model.
 */
export function modelProblem(
  agent: Agent,
  model: string | undefined,
): 'model_required' | 'model_not_allowed' | undefined {
  if (model === undefined || model === '') {
    return AGENT_VENDORS[agent] === undefined ? 'model_required' : undefined;
  }
  if (!MODEL.test(model)) return 'model_not_allowed';
  const prefixes = MODEL_PREFIXES[agent];
  const allowed = prefixes === undefined || prefixes.some((prefix) => model.startsWith(prefix));
  return allowed ? undefined : 'model_not_allowed';
}
