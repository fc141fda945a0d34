import { z } from 'zod';
import { PathInput, resolvePath } from '../../tools/paths.ts';
import { type AgentTool, defineTool, done, type ToolContext } from '../../tools/tool.ts';
import { readText } from './files.ts';

const MAX_LINES = 2_000;
const MAX_LINE_CHARS = 2_000;

export function readFileTool(context: ToolContext): AgentTool {
  return defineTool({
    name: 'read_file',
    description: `Reads a text file. Each line is preceded by its number and a tab. Returns at most ${MAX_LINES} lines.`,
    input: z.object({
      path: PathInput,
      first_line: z.number().int().min(1).optional().describe('Default 1.'),
      lines: z.number().int().min(1).max(MAX_LINES).optional(),
    }),
    async run({ path, first_line: first = 1, lines = MAX_LINES }, signal) {
      const file = resolvePath(path, context.workingDirectory);
      const text = await readText(context, file, signal);
      if (text === '') return done('[the file is empty]');
      const all = text.replace(/\n$/, '').split('\n');
      if (first > all.length) return done(`[the file has ${all.length} lines]`);
      const shown = all.slice(first - 1, first - 1 + lines);
      const numbered = shown.map((line, index) => `${first + index}\t${cutLine(line)}`);
      const left = all.length - (first - 1 + shown.length);
      if (left > 0) numbered.push(`[${left} more lines]`);
      return done(numbered.join('\n'));
    },
  });
}

function cutLine(line: string): string {
  return line.length <= MAX_LINE_CHARS ? line : `${line.slice(0, MAX_LINE_CHARS)} […]`;
}
