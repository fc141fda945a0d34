import type { AgentFrame, AgentSetup } from '@svc/contract';

/**
 * What the agent log says of a frame; undefined for nothing. Failures are logged of every agent. Nobody sees the frames
 * of a one-shot agent: its log is how its output is collected.
 */
export function logLine(frame: AgentFrame, mode: AgentSetup['mode']): string | undefined {
  if (frame.type === 'error') return `${frame.code}: ${frame.message}\n`;
  if (mode !== 'one_shot') return undefined;
  if (frame.type === 'message' && frame.role === 'assistant') return `${frame.content}\n`;
  if (frame.type === 'tool_call') return `> ${frame.name} ${JSON.stringify(frame.arguments)}\n`;
  return undefined;
}
