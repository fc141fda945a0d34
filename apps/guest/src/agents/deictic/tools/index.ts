import { editFileTool } from './edit-file.ts';
import { fetchTool } from './fetch.ts';
import { listFilesTool } from './list-files.ts';
import { readFileTool } from './read-file.ts';
import { searchTool } from './search.ts';
import { shellTool } from './shell.ts';
import type { AgentTool, ToolContext } from './tool.ts';
import { writeFileTool } from './write-file.ts';

export type { AgentTool, ToolContext, ToolOutcome } from './tool.ts';

/** All tools of deictic, with results of about `maxChars` characters at most. */
export function createTools(context: ToolContext, maxChars: number): AgentTool[] {
  return [
    shellTool(context, maxChars),
    readFileTool(context),
    writeFileTool(context),
    editFileTool(context),
    searchTool(context, maxChars),
    listFilesTool(context, maxChars),
    fetchTool(maxChars),
  ];
}
