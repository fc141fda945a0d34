import { z } from 'zod';
import { PathInput, resolvePath } from '../../tools/paths.ts';
import { type AgentTool, defineTool, done, type ToolContext } from '../../tools/tool.ts';
import { MAX_FILE_CHARS, writeText } from './files.ts';

export function writeFileTool(context: ToolContext): AgentTool {
  return defineTool({
    name: 'write_file',
    description:
      'Writes a complete text file and replaces an existing one. Creates missing directories.',
    input: z.object({ path: PathInput, content: z.string().max(MAX_FILE_CHARS) }),
    async run({ path, content }, signal) {
      const file = resolvePath(path, context.workingDirectory);
      await writeText(context, file, content, signal);
      return done(`Wrote ${Buffer.byteLength(content)} bytes to ${file}.`);
    },
  });
}
