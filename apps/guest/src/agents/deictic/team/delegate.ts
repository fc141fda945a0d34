import { z } from 'zod';
import { type AgentTool, defineTool, done } from '../../tools/tool.ts';

/** An agent to delegate to. */
export interface Member {
  /** Its capability, by which the coordinator addresses it. */
  readonly key: string;
  readonly description: string;
  /** Does the work and returns a report. Rejects with a TaskFailure when the whole task has failed. */
  work(prompt: string, signal: AbortSignal): Promise<string>;
}

const MAX_PROMPT_CHARS = 256 * 1024;

/** The tool by which a coordinator delegates work to the agents of its app. */
export function delegateTool(members: readonly [Member, ...Member[]]): AgentTool {
  const byKey = new Map(members.map((member) => [member.key, member]));
  const list = members.map(({ key, description }) => `- ${key}: ${description}`).join('\n');
  return defineTool({
    name: 'delegate',
    description: `Delegates a piece of work to another agent and returns its report. The agents, by capability:\n${list}`,
    input: z.object({
      capability: z.enum([...byKey.keys()]),
      task: z
        .string()
        .min(1)
        .max(MAX_PROMPT_CHARS)
        .describe('What to do, with all the information it takes.'),
    }),
    async run({ capability, task }, signal) {
      const report = (await byKey.get(capability)?.work(task, signal)) ?? '';
      return done(report === '' ? '[The agent has finished without a report.]' : report);
    },
  });
}
