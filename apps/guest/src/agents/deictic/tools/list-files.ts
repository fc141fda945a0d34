import { z } from 'zod';
import { capture } from '../../tools/capture.ts';
import { PathInput, resolvePath } from '../../tools/paths.ts';
import { type AgentTool, defineTool, done, failed, type ToolContext } from '../../tools/tool.ts';

const MAX_DEPTH = 8;

export function listFilesTool(context: ToolContext, maxChars: number): AgentTool {
  return defineTool({
    name: 'list_files',
    description:
      'Lists the contents of a directory. Names of directories end in a slash. Leaves out .git and node_modules.',
    input: z.object({
      path: PathInput.optional(),
      depth: z.number().int().min(1).max(MAX_DEPTH).optional().describe('Default 1.'),
    }),
    async run({ path = '.', depth = 1 }, signal) {
      const cwd = resolvePath(path, context.workingDirectory);
      const skipped = ['(', '-name', '.git', '-o', '-name', 'node_modules', ')', '-prune'];
      const directories = ['-type', 'd', '-exec', 'printf', '%s/\\n', '{}', '+'];
      // With a trailing slash, find follows a link to a directory and rejects a file.
      const place = cwd.endsWith('/') ? cwd : `${cwd}/`;
      const scope = ['-mindepth', '1', '-maxdepth', String(depth)];
      const listed = await capture(
        context,
        ['find', place, ...scope, ...skipped, '-o', ...directories, '-o', '-print'],
        { signal, maxChars },
      );
      const names = listed.stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (line.startsWith(place) ? line.slice(place.length) : line))
        .sort();
      if (names.length === 0 && listed.exitCode !== 0) {
        return failed(listed.stderr || `${cwd} cannot be listed`);
      }
      if (listed.overflowed) names.push('[truncated]');
      return done(names.length === 0 ? '[empty directory]' : names.join('\n'));
    },
  });
}
