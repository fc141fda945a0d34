import type { Desktop } from '../../../desktop/index.ts';
import { browserAddress, browserTools } from './browser/index.ts';
import { desktopTools } from './desktop.ts';
import { editFileTool } from './edit-file.ts';
import { fetchTool } from './fetch.ts';
import { listFilesTool } from './list-files.ts';
import { readFileTool } from './read-file.ts';
import { searchTool } from './search.ts';
import { shellTool } from './shell.ts';
import type { AgentTool, ToolContext } from './tool.ts';
import { writeFileTool } from './write-file.ts';

export type { AgentTool, ToolContext, ToolImage, ToolOutcome } from './tool.ts';

/** Where tools find what only some templates have. */
export interface ToolMachine {
  /** HTTP address of the browser's DevTools. */
  readonly browser?: string | undefined;
  readonly desktop?: Desktop | undefined;
}

/**
 * All tools of deictic, with results of about `maxChars` characters at most; those of a browser and of a desktop if this
 * sandbox has them.
 */
export function createTools(
  context: ToolContext,
  maxChars: number,
  { browser = browserAddress(), desktop }: ToolMachine = {},
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
    ...(desktop === undefined ? [] : desktopTools(desktop)),
  ];
}
