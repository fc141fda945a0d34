import { browserAddress, browserTools } from './browser/index.ts';
import { editFileTool } from './edit-file.ts';
import { fetchTool } from './fetch.ts';
import { listFilesTool } from './list-files.ts';
import { readFileTool } from './read-file.ts';
import { searchTool } from './search.ts';
import { shellTool } from './shell.ts';
import type { AgentTool, ToolContext } from './tool.ts';
import { writeFileTool } from './write-file.ts';

export type { AgentTool, ToolContext, ToolOutcome } from './tool.ts';

/**
 * All tools of deictic, with results of about `maxChars` characters at most; those of a browser if this sandbox has one.
 * @param browser HTTP address of the browser's DevTools
 */
export function createTools(
  context: ToolContext,
  maxChars: number,
  browser: string | undefined = browserAddress(),
): AgentTool[] {
  return [
    shellTool(context, maxChars),
    readFileTool(context),
    writeFileTool(context),
    editFileTool(context),
    searchTool(context, maxChars),
    listFilesTool(context, maxChars),
    fetchTool(maxChars),
    ...(browser === undefined ? [] : browserTools(context, maxChars, browser)),
  ];
}
