import { z } from 'zod';
import { type AgentTool, defineTool, done } from '../tools/tool.ts';

/** One to whom work can be handed. */
export interface Member {
  /** What the coordinator calls it: its capability. */
  readonly key: string;
  readonly description: string;
  /** Does the work and reports. Rejects with a TaskFailure when the task has failed for good. */
  work(prompt: string, signal: AbortSignal): Promise<string>;
}

const MAX_PROMPT_CHARS = 256 * 1024;

/** The tool with which a coordinator hands work to the agents of its app. */
export function delegateTool(members: readonly [Member, ...Member[]]): AgentTool {
  const byKey = new Map(members.map((member) => [member.key, member]));
  const list = members.map(({ key, description }) => `- ${key}: ${description}`).join('\n');
  return defineTool({
    name: 'delegate',
    description: `Has another agent do a piece of work, and gives its report. The agents, by capability:\n${list}`,
    input: z.object({
      capability: z.enum([...byKey.keys()]),
      task: z.string().min(1).max(MAX_PROMPT_CHARS).describe('What to do, with all it takes.'),
    }),
    async run({ capability, task }, signal) {
      const report = (await byKey.get(capability)?.work(task, signal)) ?? '';
      return done(report === '' ? '[The agent is done and says nothing.]' : report);
    },
  });
}
