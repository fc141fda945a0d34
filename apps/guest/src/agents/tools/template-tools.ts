import { type Desktop, sandboxDesktop } from '../../desktop/index.ts';
import { browserAddress, browserTools } from './browser/index.ts';
import { desktopTools } from './desktop.ts';
import type { AgentTool, ToolContext } from './tool.ts';

/** What only some templates have. */
export interface ToolMachine {
  /** HTTP address of the browser's DevTools. */
  readonly browser?: string | undefined;
  readonly desktop?: Desktop | undefined;
}

/** What the template of this sandbox has. */
function thisSandbox(): ToolMachine {
  return { browser: browserAddress(), desktop: sandboxDesktop() };
}

/**
 * The tools that agents of every kind have in some templates only: those of a browser and those of a desktop. Their
 * results have about `maxChars` characters at most.
 */
export function templateTools(
  context: ToolContext,
  maxChars: number,
  { browser, desktop }: ToolMachine = thisSandbox(),
): AgentTool[] {
  return [
    ...(browser === undefined ? [] : browserTools(context, maxChars, browser)),
    ...(desktop === undefined ? [] : desktopTools(desktop)),
  ];
}
