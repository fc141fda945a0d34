import { type ToolMachine, templateTools } from '../../tools/template-tools.ts';
import type { AgentTool, ToolContext } from '../../tools/tool.ts';
import { editFileTool } from './edit-file.ts';
import { fetchTool } from './fetch.ts';
import { listFilesTool } from './list-files.ts';
import { readFileTool } from './read-file.ts';
import { searchTool } from './search.ts';
import { shellTool } from './shell.ts';
import { writeFileTool } from './write-file.ts';

/** All tools of deictic, with results of about `maxChars` characters at most. `machine` defaults to this sandbox. */
export function createTools(
  context: ToolContext,
  maxChars: number,
  machine?: ToolMachine,
): AgentTool[] {
  return [
    shellTool(context, maxChars),
    readFileTool(context),
    writeFileTool(context),
    editFileTool(context),
    searchTool(context, maxChars),
    listFilesTool(context, maxChars),
    fetchTool(maxChars),
    ...templateTools(context, maxChars, machine),
  ];
}
