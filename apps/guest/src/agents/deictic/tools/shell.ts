import { z } from 'zod';
import { runShell } from '../../processes/index.ts';
import { type AgentTool, defineTool, type ToolContext } from '../../tools/tool.ts';
import { HeadAndTail } from '../../tools/truncate.ts';

const DEFAULT_SECONDS = 120;
const MAX_SECONDS = 1_800;

export function shellTool(context: ToolContext, maxChars: number): AgentTool {
  return defineTool({
    name: 'shell',
    description:
      'Runs a bash command in the working directory, without a terminal. Returns stdout and stderr together; the middle of a long output is cut. Each command runs in a new shell: changes of directory and variables are not kept.',
    input: z.object({
      command: z.string().min(1).max(65_536),
      timeout_seconds: z
        .number()
        .int()
        .min(1)
        .max(MAX_SECONDS)
        .optional()
        .describe(`The command is killed after this time. Default ${DEFAULT_SECONDS}.`),
    }),
    async run({ command, timeout_seconds: seconds = DEFAULT_SECONDS }, signal) {
      const output = new HeadAndTail(maxChars);
      const result = await runShell(context, command, {
        signal,
        timeoutMs: seconds * 1000,
        onOutput: (_, text) => output.add(text),
      });
      signal.throwIfAborted();
      const notes = [];
      if (result.ended === 'timeout') notes.push(`[killed after ${seconds} s]`);
      else if (result.exitCode !== 0) notes.push(`[exit code ${result.exitCode}]`);
      const text = [output.text().trimEnd(), ...notes].filter((part) => part !== '').join('\n');
      return { text: text === '' ? '[no output]' : text, isError: notes.length > 0 };
    },
  });
}
