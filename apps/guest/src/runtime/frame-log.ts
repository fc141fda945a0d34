import type { AgentFrame, AgentSetup } from '@svc/contract';

/**
 * The line of the agent log for a frame; undefined for none. Failures of all agents are logged. The frames of a
 * one-shot agent have no client, so its messages and tool calls are logged too.
 */
export function logLine(frame: AgentFrame, mode: AgentSetup['mode']): string | undefined {
  if (frame.type === 'error') return `${frame.code}: ${frame.message}\n`;
  if (mode !== 'one_shot') return undefined;
  if (frame.type === 'message' && frame.role === 'assistant') return `${frame.content}\n`;
  if (frame.type === 'tool_call') return `> ${frame.name} ${JSON.stringify(frame.arguments)}\n`;
  return undefined;
}
