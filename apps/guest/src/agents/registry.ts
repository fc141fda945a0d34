import type { Agent } from '@svc/contract';
import type { StartAgent } from './agent.ts';

/** Loaded when first asked for: an agent that nobody uses costs no memory. */
const AGENTS: Readonly<Record<Agent, () => Promise<StartAgent>>> = {
  deictic: async () => (await import('./deictic/index.ts')).startDeictic,
  'claude-code': async () => (await import('./claude-code/index.ts')).startClaudeCode,
  codex: async () => (await import('./codex/index.ts')).startCodex,
};

/** How the named agent is started. */
export function loadAgent(agent: Agent): Promise<StartAgent> {
  return AGENTS[agent]();
}
