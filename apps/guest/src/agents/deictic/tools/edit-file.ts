import { z } from 'zod';
import { PathInput, resolvePath } from '../../tools/paths.ts';
import { type AgentTool, defineTool, done, failed, type ToolContext } from '../../tools/tool.ts';
import { MAX_FILE_CHARS, readText, writeText } from './files.ts';

export function editFileTool(context: ToolContext): AgentTool {
  return defineTool({
    name: 'edit_file',
    description:
      'Replaces a piece of a text file. `old_text` must occur exactly once in the file, character for character, without the line numbers of read_file.',
    input: z.object({
      path: PathInput,
      old_text: z.string().min(1).max(MAX_FILE_CHARS),
      new_text: z.string().max(MAX_FILE_CHARS),
    }),
    async run({ path, old_text: oldText, new_text: newText }, signal) {
      const file = resolvePath(path, context.workingDirectory);
      const text = await readText(context, file, signal);
      const at = text.indexOf(oldText);
      if (at === -1) return failed(`old_text does not occur in ${file}. Nothing was changed.`);
      if (text.indexOf(oldText, at + 1) !== -1) {
        return failed(`old_text occurs more than once in ${file}. Nothing was changed.`);
      }
      const edited = text.slice(0, at) + newText + text.slice(at + oldText.length);
      await writeText(context, file, edited, signal);
      return done(`Changed ${file}.`);
    },
  });
}
