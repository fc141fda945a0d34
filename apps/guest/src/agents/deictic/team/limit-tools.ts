import type { AgentTool } from '../../tools/tool.ts';
import type { AgentDescription } from './instructions.ts';

/**
 * The tools that an agent of an app may use: all, if it names none. The control plane refuses unknown names, so one
 * arrives only from a newer control plane; it is logged.
 */
export function limitTools(
  tools: readonly AgentTool[],
  agent: AgentDescription,
  log: (text: string) => void,
): AgentTool[] {
  const { name, tools: named = [] } = agent;
  if (named.length === 0) return [...tools];
  const unknown = named.filter((wanted) => !tools.some((tool) => tool.name === wanted));
  if (unknown.length > 0) log(`agent ${name}: unknown tools: ${unknown.join(', ')}`);
  return tools.filter((tool) => named.includes(tool.name));
}
