import type { Agent } from '@svc/contract';
import type { StartAgent } from './agent.ts';

/** Loaded on first use: an unused agent costs no memory. */
const AGENTS: Readonly<Record<Agent, () => Promise<StartAgent>>> = {
  deictic: async () => (await import('./deictic/index.ts')).startDeictic,
  'claude-code': async () => (await import('./claude-code/index.ts')).startClaudeCode,
  codex: async () => (await import('./codex/index.ts')).startCodex,
};

/** The start function of the named agent. */
export function loadAgent(agent: Agent): Promise<StartAgent> {
  return AGENTS[agent]();
}
