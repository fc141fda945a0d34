import { z } from 'zod';
import { capture, NO_SUCH_PROGRAM } from '../../tools/capture.ts';
import { PathInput, resolvePath } from '../../tools/paths.ts';
import { type AgentTool, defineTool, done, failed, type ToolContext } from '../../tools/tool.ts';

const MAX_PATTERN_CHARS = 2_000;
/** Exit code of both programs when nothing matches. */
const NOTHING_FOUND = 1;

export function searchTool(context: ToolContext, maxChars: number): AgentTool {
  return defineTool({
    name: 'search',
    description:
      'Searches one text file, or all below a directory, for lines that match a regular expression. Returns path, line number and line.',
    input: z.object({
      pattern: z.string().min(1).max(MAX_PATTERN_CHARS),
      path: PathInput.optional(),
      glob: z
        .string()
        .min(1)
        .max(500)
        .optional()
        .describe('Only files whose name matches, such as `*.ts`.'),
      ignore_case: z.boolean().optional(),
    }),
    async run({ pattern, path = '.', glob, ignore_case: ignoreCase = false }, signal) {
      const place = resolvePath(path, context.workingDirectory);
      const rg = ['rg', '--line-number', '--no-heading', '--with-filename', '--color=never'];
      const grep = ['grep', '-rnIHE'];
      if (ignoreCase) {
        rg.push('--ignore-case');
        grep.push('-i');
      }
      if (glob !== undefined) {
        rg.push(`--glob=${glob}`);
        grep.push(`--include=${glob}`);
      }
      const target = ['-e', pattern, '--', place];
      const options = { signal, maxChars };
      let found = await capture(context, ['rg', ...rg.slice(1), ...target], options);
      if (found.exitCode === NO_SUCH_PROGRAM) {
        found = await capture(context, ['grep', ...grep.slice(1), ...target], options);
      }
      if (found.overflowed) return done(`${found.stdout}\n[truncated]`);
      if (found.stdout !== '') return done(found.stdout.trimEnd());
      if (found.exitCode <= NOTHING_FOUND) return done('[nothing found]');
      return failed(found.stderr || `the search ended with exit code ${found.exitCode}`);
    },
  });
}
